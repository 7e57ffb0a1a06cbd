"""What a search found, as the answers to texts.

B texts, K candidates for each, n answers, L tokens of the longest one, S tokens of the longest
source.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_drill.decoding import Beams, Generation


class Answers(NamedTuple):
    """Answers to texts, the best first.

    Attributes:
        texts: Strings `[B, n]`, `""` where there are fewer than n.
        scores: Floats `[B, n]`, what they are ranked by; negative infinity where there are fewer.
        log_probs: Floats `[B, n]`, log-probabilities of what was written.
        lengths: Integers `[B, n]`, in tokens, an end token included.
        is_truncated: Booleans `[B, n]`, whether an answer had no more room before it ended.
    """

    texts: Any
    scores: Any
    log_probs: Any
    lengths: Any
    is_truncated: Any

    def distinct(self, number: int) -> "Answers":
        """The first `number` answers that are there and whose texts differ, by their scores.

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
        best = tf.argsort(rank, axis=1)[:, :number]  # no two ranks are the same
        chosen = self.take(best).where(tf.gather(is_first, best, batch_dims=1))
        return chosen.take(tf.math.top_k(chosen.scores, number).indices)

    def take(self, places: tf.Tensor) -> "Answers":
        """The answers at places `[B, n]`."""
        return Answers(*(tf.gather(each, places, batch_dims=1) for each in self))

    def where(self, is_there: tf.Tensor) -> "Answers":
        """These where `is_there` `[B, n]`, and none elsewhere."""
        infinity = tf.fill(tf.shape(self.scores), float("-inf"))
        return Answers(
            tf.where(is_there, self.texts, ""),
            tf.where(is_there, self.scores, infinity),
            tf.where(is_there, self.log_probs, infinity),
            tf.where(is_there, self.lengths, 0),
            self.is_truncated & is_there,
        )

    def empty_where(self, is_empty: tf.Tensor) -> "Answers":
        """One empty answer, which is certain, to texts that are empty: booleans `[B]`."""
        is_first = tf.range(tf.shape(self.texts)[1]) == 0  # [n]
        others = self.where(~is_empty[:, None])
        is_certain = is_empty[:, None] & is_first
        return others._replace(
            scores=tf.where(is_certain, 0.0, others.scores),
            log_probs=tf.where(is_certain, 0.0, others.log_probs),
        )


def as_beams(found: Beams | Generation, number: int) -> Beams:
    """What a search found, with `number` sequences for each text if it was drawn.

    Samples are in the order in which they were drawn, and their score is their log-probability.
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
    """The source's word that each word of an answer attended to most: strings `[B, n, L]`.

    Args:
        attention: Floats `[B, n, L, S]`.
        words: Strings `[B, S]`, the words of the sources.
        lengths: Integers `[B]`, how many they are, the end token, which is not copied, included.
    """
    is_word = tf.sequence_mask(lengths - 1, tf.shape(attention)[3])  # [B, S]
    most = tf.argmax(tf.where(is_word[:, None, None], attention, -1.0), axis=3)
    return tf.gather(words, most, batch_dims=1)
