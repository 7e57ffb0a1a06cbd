"""Converts the results of a search to output texts, with their scores.

Shapes: B texts, K candidates for each, n outputs, L tokens of the longest output, S tokens of the
longest source.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_drill.decoding import Beams, Generation


class Answers(NamedTuple):
    """Model outputs for each of B texts, the best first.

    Attributes:
        texts: Strings `[B, n]`; `""` for missing outputs.
        scores: Floats `[B, n]`, scores for ranking; negative infinity for missing outputs.
        log_probs: Floats `[B, n]`, log-probabilities of the outputs.
        lengths: Integers `[B, n]`, numbers of tokens, including an end token.
        is_truncated: Booleans `[B, n]`, whether an output reached its maximum length before its
            end.
    """

    texts: Any
    scores: Any
    log_probs: Any
    lengths: Any
    is_truncated: Any

    def distinct(self, number: int) -> "Answers":
        """Returns the best `number` outputs with different texts, sorted by score.

        Example:

        >>> scores = tf.constant([[-1.0, -2.0, -3.0]])
        >>> answers = Answers(tf.constant([["a", "a", "b"]]), scores, scores, scores, scores > 0)
        >>> answers.distinct(2).texts.numpy().tolist()
        [[b'a', b'b']]
        """
        places = tf.range(tf.shape(self.texts)[1])  # [K]
        is_there = tf.math.is_finite(self.scores)
        same = self.texts[:, :, None] == self.texts[:, None, :]  # [B, K, K]
        is_earlier = (places[None] < places[:, None]) & is_there[:, None]
        is_first = is_there & ~tf.reduce_any(same & is_earlier, axis=2)
        rank = tf.where(is_first, places, tf.size(places) + places)
        best = tf.argsort(rank, axis=1)[:, :number]  # all ranks are different
        chosen = self.take(best).where(tf.gather(is_first, best, batch_dims=1))
        return chosen.take(tf.math.top_k(chosen.scores, number).indices)

    def take(self, places: tf.Tensor) -> "Answers":
        """Returns the outputs at positions `[B, n]`."""
        return Answers(*(tf.gather(each, places, batch_dims=1) for each in self))

    def where(self, is_there: tf.Tensor) -> "Answers":
        """Keeps the outputs for which `is_there` `[B, n]` is true. The others become missing."""
        infinity = tf.fill(tf.shape(self.scores), float("-inf"))
        return Answers(
            tf.where(is_there, self.texts, ""),
            tf.where(is_there, self.scores, infinity),
            tf.where(is_there, self.log_probs, infinity),
            tf.where(is_there, self.lengths, 0),
            self.is_truncated & is_there,
        )

    def empty_where(self, is_empty: tf.Tensor) -> "Answers":
        """Replaces the outputs of empty texts (`is_empty`, booleans `[B]`) by one empty output with
        log-probability 0.
        """
        is_first = tf.range(tf.shape(self.texts)[1]) == 0  # [n]
        others = self.where(~is_empty[:, None])
        is_certain = is_empty[:, None] & is_first
        return others._replace(
            scores=tf.where(is_certain, 0.0, others.scores),
            log_probs=tf.where(is_certain, 0.0, others.log_probs),
        )


def as_beams(found: Beams | Generation, number: int) -> Beams:
    """Converts the result of a search or of sampling to `Beams`, with `number` samples for each
    text.

    Samples keep their order. The score of a sample is its log-probability.
    """
    if isinstance(found, Beams):
        return found

    def shaped(x):
        return tf.reshape(x, [tf.shape(x)[0] // number, number, *tf.unstack(tf.shape(x))[1:]])

    log_probs = shaped(found.log_probs)  # [B, n, L]
    totals = tf.reduce_sum(log_probs, axis=2)
    return Beams(
        shaped(found.tokens),
        shaped(found.lengths),
        totals,
        totals,
        log_probs,
        tf.zeros([*tf.unstack(tf.shape(log_probs)), 0]),
    )


def copied_words(attention: tf.Tensor, words: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Returns the source word with the most attention for each word of the outputs.

    The result has strings `[B, n, L]`.

    Args:
        attention: Floats `[B, n, L, S]`.
        words: Strings `[B, S]`, words of the sources.
        lengths: Integers `[B]`, lengths of the sources, including the end token, which is never
            copied.
    """
    is_word = tf.sequence_mask(lengths - 1, tf.shape(attention)[3])  # [B, S]
    most = tf.argmax(tf.where(is_word[:, None, None], attention, -1.0), axis=3)
    return tf.gather(words, most, batch_dims=1)
