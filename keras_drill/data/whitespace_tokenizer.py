"""Tokenizer that splits text at white space."""

import keras
import tensorflow as tf

from keras_drill.data.tokenizer import Tokenizer, as_text, join_words

# Applied in order to words joined by single spaces; RE2 has no look-around.
_SPACING = (
    (r" @([-.,])@ ", r"\1"),  # WikiText writes `1 @,@ 000` and `well @-@ known`
    (r" n't\b", "n't"),
    (r" ('(?:s|m|d|re|ve|ll|S|M|D|RE|VE|LL))\b", r"\1"),
    (r" ([.,;:!?%)\]}]+)", r"\1"),
    (r"([(\[{$]) ", r"\1"),
    (r"s ' ", "s' "),
    (r'" ([^"]*) "', r'"\1"'),
)


@keras.saving.register_keras_serializable(package="keras_drill")
class WhitespaceTokenizer(Tokenizer):
    """Tokenizer that splits text at white space, by default without other changes.

    Use this tokenizer for corpora that are distributed in tokenized form, such as Penn Treebank and
    WikiText-2. The numbers of tokens then equal the published numbers.

    Args:
        lowercase: Whether to lower-case the words, in every script.
        tidy: Whether `detokenize` removes the spaces around punctuation and replaces the marks of
            tokenized corpora, such as `@-@` for a hyphen. If `False`, `detokenize` only joins the
            words by spaces. Use `False` inside a `PreprocessedTokenizer` with the step
            `MosesTokenization`, which itself removes the spaces.

    Example:

    >>> from keras_drill.data import WhitespaceTokenizer
    >>> tokenizer = WhitespaceTokenizer()
    >>> words = tokenizer.tokenize(" = Robert <unk> = ")
    >>> words.numpy().tolist()
    [b'=', b'Robert', b'<unk>', b'=']
    >>> tokenizer.detokenize(["Some", "1", "@,@", "000", "men", "(", "or", "so", ")", "."]).numpy()
    b'Some 1,000 men (or so).'
    """

    def __init__(self, lowercase: bool = False, tidy: bool = True):
        super().__init__(name="whitespace_tokenizer")
        self.lowercase = lowercase
        self.tidy = tidy

    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        text = as_text(text)
        if self.lowercase:
            text = tf.strings.lower(text, encoding="utf-8")
        return tf.strings.split(text)

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        return join_words(words, _SPACING if self.tidy else ())

    def get_config(self) -> dict:
        return {"lowercase": self.lowercase, "tidy": self.tidy}
