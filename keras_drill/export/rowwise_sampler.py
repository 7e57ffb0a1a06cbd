"""Sampling whose settings differ from row to row."""

from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.decoding.sampler import Sampler
from keras_drill.decoding.top_p_sampler import keep_top_p


class RowwiseSampler(Sampler):
    """Temperature, then top-k, then top-p, each a tensor with one value per row.

    A server puts the requests of several users into one batch, so every value has a meaning: one
    request must not make the others fail.

    Args:
        temperature: Float tensor `[B]`. 0 (or less) takes the most probable word.
        top_k: Integer tensor `[B]`. 0 (or less) keeps all words.
        top_p: Float tensor `[B]`. 1 (or more) keeps all words; at least one is kept.
    """

    def __init__(self, temperature, top_k, top_p):
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p

    def choose(self, log_probs, uniforms):
        sorted_log_probs, words = ops.top_k(log_probs, log_probs.shape[-1])  # [B, V]
        is_greedy = ops.logical_not(self.temperature > 0)  # NaN too
        temperature = ops.where(is_greedy, 1.0, self.temperature)[:, None]
        kept = ops.where(self.top_k > 0, self.top_k, log_probs.shape[-1])
        kept = ops.where(is_greedy, 1, kept)[:, None]  # [B, 1]
        positions = ops.arange(log_probs.shape[-1], dtype="int32")  # [V]
        scores = ops.where(positions < kept, sorted_log_probs / temperature, -float("inf"))
        nucleus = keep_top_p(ops.softmax(scores, axis=-1), self.top_p[:, None])
        place = draw(nucleus, uniforms)
        return ops.take_along_axis(words, place[:, None], axis=-1)[:, 0]
