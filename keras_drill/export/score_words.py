"""Computes log-probabilities of the words of texts.

Shapes: B texts, T words of the longest one, d hidden features.
"""

from typing import Any

import tensorflow as tf

from keras_drill.export.tiles import in_tiles


def score_words(head: Any, hidden: Any, ids: Any, words: Any, lengths: Any) -> dict[str, tf.Tensor]:
    """Computes the log-probabilities and perplexities of texts, word by word.

    Args:
        head: The output layer.
        hidden: Hidden states for the prediction of each word, `[B, T, d]`.
        ids: Ids of the words, `[B, T]`.
        words: The words, `[B, T]`.
        lengths: Number of words of each text, `[B]`. Positions after the end are ignored.

    Returns:
        Dictionary of `words` and `log_probs` `[B, T]`, and of `lengths`, `total_log_probs` and
        `perplexities` `[B]`. The perplexity of a text without words is 0.
    """
    log_probs = in_tiles(
        head, lambda hidden, ids: tf.gather(head(hidden), ids, batch_dims=1), hidden, ids
    )  # [B, T]
    is_word = tf.sequence_mask(lengths, tf.shape(ids)[1])
    log_probs = tf.where(is_word, log_probs, 0.0)
    total_log_probs = tf.reduce_sum(log_probs, axis=-1)
    counts = tf.cast(tf.maximum(lengths, 1), tf.float32)
    return {
        "words": tf.where(is_word, words, ""),
        "log_probs": log_probs,
        "lengths": lengths,
        "total_log_probs": total_log_probs,
        "perplexities": tf.where(lengths > 0, tf.exp(-total_log_probs / counts), 0.0),
    }
