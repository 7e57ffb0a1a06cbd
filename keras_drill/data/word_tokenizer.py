"""Tokenizer that splits raw text into words and punctuation."""

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from keras_drill.data.preprocessing import NORMALIZATIONS
from keras_drill.data.tokenizer import Tokenizer, as_text, join_words

# Soft hyphen, zero-width space, word joiner and byte-order mark are not part of words.
_INVISIBLE = r"[\x{00AD}\x{200B}\x{2060}\x{FEFF}]"
_SPACE = r"[\pZ\p{Cc}]"
_WORD = "|".join(
    (
        r"<(?:unk|eos|sos|pad)>",  # the text may be the output of a model
        r"\p{Nd}+(?:[.,]\p{Nd}+)*[\pL\pM\pN_]*",
        r"\pL\.(?:\pL\.)+",
        r"\.?[\pL_][\pL\pM\pN_]*(?:['’][\pL\pM]+)*",
        r"\pN+",
        r"\.\.+",
        r"[^\pZ\p{Cc}]",
    )
)
_SPACING = (
    (r" (\.?[.,;:!?%)\]}’”…]+|\.[\pL_])", r"\1"),
    (r"([(\[{$“‘]) ", r"\1"),
    (r" ([-/_]) ", r"\1"),
    (r'" ([^"]*) "', r'"\1"'),
)


@keras.saving.register_keras_serializable(package="keras_drill")
class WordTokenizer(Tokenizer):
    """Tokenizer that splits raw text into words, numbers and single punctuation marks.

    By default, the text is first normalized (Unicode NFKC) and lower-cased. The tokenizer splits it
    into these tokens:

    - words, with apostrophes inside them (`don't`) and with a full stop before them (`x.name`
      becomes `x` and `.name`);
    - abbreviations of single letters, with their full stops (`e.g.`);
    - numbers, with points and commas inside them (`1,000.5`) and letters after them (`3rd`);
    - runs of full stops;
    - all other characters except white space, one by one.

    `<unk>`, `<eos>`, `<sos>` and `<pad>` are not split. Soft hyphens and zero-width spaces are
    dropped. Bytes that are not UTF-8 become U+FFFD, the replacement character.

    Args:
        lowercase: Whether to lower-case the words, in every script.
        normalization: Unicode normal form: `"NFC"`, `"NFD"`, `"NFKC"` or `"NFKD"`; `None` for no
            normalization.

    Example:

    >>> from keras_drill.data import WordTokenizer
    >>> tokenizer = WordTokenizer()
    >>> words = tokenizer.tokenize('He said: "Don\\'t pay 1,000.50!"')
    >>> [word.decode() for word in words.numpy()]
    ['he', 'said', ':', '"', "don't", 'pay', '1,000.50', '!', '"']
    >>> tokenizer.detokenize(words).numpy().decode()
    'he said: "don\\'t pay 1,000.50!"'
    """

    def __init__(self, lowercase: bool = True, normalization: str | None = "NFKC"):
        super().__init__(name="word_tokenizer")
        if normalization not in (None, *NORMALIZATIONS):
            raise ValueError(
                f"`normalization` must be `None` or one of {NORMALIZATIONS}. "
                f"Received: normalization={normalization!r}"
            )
        self.lowercase = lowercase
        self.normalization = normalization

    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        text = as_text(text)
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        if self.normalization is not None:
            text = tf_text.normalize_utf8(text, self.normalization)
        if self.lowercase:
            text = tf.strings.lower(text, encoding="utf-8")
        text = tf.strings.regex_replace(text, _INVISIBLE, "")
        text = tf.strings.regex_replace(text, _SPACE, " ")
        return tf.strings.split(tf.strings.regex_replace(text, f"({_WORD})", r" \1 "))

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        return join_words(words, _SPACING)

    def get_config(self) -> dict:
        return {"lowercase": self.lowercase, "normalization": self.normalization}
