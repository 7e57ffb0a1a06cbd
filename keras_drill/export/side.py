"""Converts texts to padded ids and back, for one side of an encoder–decoder.

Shapes: B texts, T tokens of the longest one.
"""

from typing import Any

import tensorflow as tf

from keras_drill.data.truncate import truncation_mask


class Side(tf.Module):
    """Converts texts on one side of an encoder–decoder, sources or targets, to ids and back.

    Pass two sides, of the sources and of the targets, to `keras_drill.export.Translator`, which
    calls their methods. The methods run eagerly and, except for `separator_id`, in graphs. A text
    is one line, as in training: line breaks become spaces, and an end token follows. If the text
    contains the pad token, the token is read as an unknown word, since models ignore padding.

    Args:
        tokenizer: A `keras_drill.data.Tokenizer`. If its preprocessing runs in Python only, calls
            in graphs raise a `ValueError`.
        vocabulary: A `keras_drill.data.Vocabulary`, or an `AssetVocabulary`.

    Example:

    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> from keras_drill.export import Side
    >>> vocabulary = Vocabulary(["<pad>", "<unk>", "<eos>", "<sos>", "a", "house"])
    >>> side = Side(WhitespaceTokenizer(), vocabulary)
    >>> ids, lengths = side.encode(["a small house", ""])
    >>> ids.numpy().tolist(), lengths.numpy().tolist()
    ([[4, 1, 5, 2], [2, 0, 0, 0]], [4, 1])
    >>> side.decode(ids).numpy().tolist()
    [b'a <unk> house', b'']
    """

    def __init__(self, tokenizer: Any, vocabulary: Any):
        super().__init__(name="side")
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary

    def encode(
        self,
        texts: tf.Tensor,
        max_tokens: int | None = None,
        truncation_side: str = "right",
        separator_id: int | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Converts texts to ids with an end token.

        Args:
            texts: String tensor `[B]`, B texts.
            max_tokens: Longer texts are truncated to this number of tokens, including the end
                token; `None` for no limit.
            truncation_side: `"right"` cuts the end of texts, `"left"` their beginning; see
                `keras_drill.data.truncate_text`.
            separator_id: Id of the token between the turns of a dialogue; `None` if texts have no
                turns. Truncation on the left then drops whole turns, the oldest first.

        Returns:
            Ids `[B, T]` (int32) with the end token, padded to the T tokens of the longest text with
            the pad token, or with 0 if the vocabulary has no pad token. And the lengths `[B]`
            (int32) before truncation, including the end token.
        """
        return self.read(texts, max_tokens, truncation_side, separator_id)[:2]

    def read(
        self,
        texts: tf.Tensor,
        max_tokens: int | None = None,
        truncation_side: str = "right",
        separator_id: int | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Converts texts as `encode` does, and also returns the words of the texts.

        Args:
            texts, max_tokens, truncation_side, separator_id: As in `encode`.

        Returns:
            Ids and lengths as from `encode`, and the words, a string tensor `[B, T]`. Words that
            are not in the vocabulary are returned as in the text. The entries for the end token and
            for padding are `""`.
        """
        vocabulary = self.vocabulary
        lines = tf.strings.regex_replace(texts, r"\s+", " ")
        words = self.tokenizer.tokenize(lines)  # [B, (T)]
        ids = vocabulary.ids(words)
        if vocabulary.pad_id is not None:
            flat = ids.flat_values
            is_pad = flat == vocabulary.pad_id  # a pad token in a text is not padding
            ids = ids.with_flat_values(tf.where(is_pad, vocabulary.unknown_id, flat))
        lengths = tf.cast(ids.row_lengths(), tf.int32) + 1
        if max_tokens is not None:
            mask = truncation_mask(ids, max_tokens - 1, truncation_side, separator_id)
            ids, words = (tf.ragged.boolean_mask(row, mask) for row in (ids, words))
        end = tf.fill([ids.nrows(), 1], vocabulary.end_id)
        ids = tf.concat([ids, end], axis=1)
        words = tf.concat([words, tf.fill([words.nrows(), 1], "")], axis=1).to_tensor("")
        ids = ids.to_tensor(0 if vocabulary.pad_id is None else vocabulary.pad_id)
        return ids, lengths, words

    def separator_id(self, separator: str) -> int | None:
        """Returns the `separator_id` for `encode`: the id of a word between turns of a dialogue.

        Returns `None` if the vocabulary does not contain `separator`, or if the tokenizer splits
        `separator` into several tokens.
        """
        words = self.tokenizer.tokenize(tf.constant([separator])).flat_values
        words = words[words != "\u2581"]  # the space of SentencePiece
        ids = self.vocabulary.ids(words).numpy().tolist()
        return ids[0] if len(ids) == 1 and ids[0] != self.vocabulary.unknown_id else None

    def decode(self, ids: tf.Tensor, own_words: tf.Tensor | None = None) -> tf.Tensor:
        """Converts ids to texts, up to the first end token, without start tokens and padding.

        Args:
            ids: Integer tensor `[..., T]`, T tokens of each text.
            own_words: Strings `[..., T]` to write instead of the vocabulary's words for `ids`, for
                example words copied from the source. `""` keeps the vocabulary's word.

        Returns:
            String tensor `[...]`.
        """
        vocabulary = self.vocabulary
        ids = tf.convert_to_tensor(ids)
        rows = tf.reshape(ids, [tf.reduce_prod(tf.shape(ids)[:-1]), tf.shape(ids)[-1]])  # [B, T]
        ends = tf.cast(rows == vocabulary.end_id, tf.int32)
        kept = tf.cumsum(ends, axis=1) == 0
        for special in (vocabulary.start_id, vocabulary.pad_id):
            if special is not None:
                kept &= rows != special
        words = vocabulary.words(tf.ragged.boolean_mask(rows, kept))  # [B, (T)]
        if own_words is not None:
            own = tf.ragged.boolean_mask(tf.reshape(own_words, tf.shape(rows)), kept).flat_values
            words = words.with_flat_values(tf.where(own == "", words.flat_values, own))
        return tf.reshape(self.tokenizer.detokenize(words), tf.shape(ids)[:-1])
