"""Converts texts to words and ids, and back.

Shapes: B texts, T words of the longest text. In `[B, (T)]`, T differs between texts (ragged).
"""

from typing import Any

import tensorflow as tf

from keras_drill.data.paragraphs import join_wrapped_lines
from keras_drill.types import Tensor


class TextCodec(tf.Module):
    """Converts texts to the inputs of a language model, and back.

    `keras_drill.export.TextModel` creates and uses a codec. The methods run eagerly and in graphs.
    Texts are read as in training: each line break becomes an end token. Shape letters: B texts, T
    tokens of a text. `[B, (T)]` is a ragged tensor, in which T differs between texts.

    Args:
        tokenizer: A `keras_drill.data.Tokenizer`.
        vocabulary: A `keras_drill.data.Vocabulary`, or an `AssetVocabulary`.
        unit: After which unit of text an end token follows: `"line"` or `"paragraph"`. With
            `"paragraph"`, the lines of each paragraph of a text are first joined to one line, see
            `keras_drill.data.Paragraphs`.

    Example:

    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> from keras_drill.export import TextCodec
    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat"])
    >>> codec = TextCodec(WhitespaceTokenizer(), vocabulary)
    >>> codec.with_start(codec.ids_of_prompts(["the cat", "the\\ndog"])).numpy().tolist()
    [[1, 2, 3, 0], [1, 2, 1, 0]]
    >>> codec.ids_of_texts(["the cat\\n"]).to_list()
    [[2, 3, 1]]
    >>> codec.join(codec.words_of_prompts(["the\\ncat"])).numpy().tolist()
    [b'the\\ncat']
    """

    def __init__(self, tokenizer: Any, vocabulary: Any, unit: str = "line"):
        super().__init__(name="codec")
        if unit not in ("line", "paragraph"):
            raise ValueError(f"`unit` must be 'line' or 'paragraph'. Received: unit={unit!r}")
        self.tokenizer = tokenizer
        self.unit = unit
        self.vocabulary = vocabulary
        self.start_id = vocabulary.end_id if vocabulary.start_id is None else vocabulary.start_id

    def words_of_prompts(self, texts: Any) -> Any:
        """Splits prompts `[B]` into words, strings `[B, (T)]`. Line breaks become end tokens.

        No end token follows the last line, so that a model can continue the line.
        """
        return self._words_of_lines(self._joined(texts))[:, :-1]

    def ids_of_prompts(self, texts: Any) -> Any:
        """Converts prompts `[B]` to ids, int32 `[B, (T)]`. Line breaks become end tokens.

        No end token follows the last line, so that a model can continue the line.
        """
        return self.vocabulary.ids(self.words_of_prompts(texts))

    def ids_of_texts(self, texts: Any) -> Any:
        """Converts complete texts `[B]` to ids, int32 `[B, (T)]`.

        An end token follows each line, also the last one. A line break at the end of a text does
        not begin another line.
        """
        texts = tf.strings.regex_replace(self._joined(texts), r"\n\z", "")
        return self.vocabulary.ids(self._words_of_lines(texts))

    def with_start(self, ids: Tensor) -> Any:
        """Adds the start token before ids `[B, (T)]`, and pads the rows with 0 to equal lengths.

        Without a start token in the vocabulary, the end token is added instead.

        Returns:
            int32 tensor `[B, 1 + T]`, where T is the length of the longest text.
        """
        start = tf.fill([ids.nrows(), 1], self.start_id)
        # Dense, so that an empty batch also has a first column for the model to read.
        return tf.concat([start, ids.to_tensor(0)], axis=1)

    def join(self, words: Tensor) -> Any:
        """Joins words `[B, (T)]` to readable texts `[B]`. End tokens become line breaks."""
        lines = tf.ragged.map_flat_values(
            lambda flat: tf.where(flat == self.vocabulary.end_token, "\n", flat), words
        )
        return tf.strings.regex_replace(self.tokenizer.detokenize(lines), " *\n *", "\n")

    def readable(self, words: Tensor) -> Any:
        """Returns `words` `[B, (T)]` without the end tokens."""
        return tf.ragged.boolean_mask(words, words != self.vocabulary.end_token)

    def _joined(self, texts):
        return join_wrapped_lines(texts) if self.unit == "paragraph" else texts

    def _words_of_lines(self, texts):
        """Splits texts into words, with an end token after each line: ragged `[B, (T)]`."""
        lines = tf.strings.split(texts, "\n")  # [B, (lines)]
        words = self.tokenizer.tokenize(lines.flat_values)  # [lines, (words)]
        ends = tf.fill([words.nrows(), 1], self.vocabulary.end_token)
        return lines.with_flat_values(tf.concat([words, ends], axis=1)).merge_dims(1, 2)
