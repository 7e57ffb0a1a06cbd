"""Sampling with different settings for each row."""

from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.decoding.sampler import Sampler
from keras_drill.decoding.top_p_sampler import keep_top_p


class RowwiseSampler(Sampler):
    """Samples with temperature, top-k, top-p and min-p, each a tensor with one value per row.

    All values are valid, because a server combines the requests of several users in one batch, and
    one request must not make the others fail.

    Args:
        temperature: Float tensor `[B]`. 0 (or less) selects the most probable word.
        top_k: Integer tensor `[B]`. 0 (or less) keeps all words.
        top_p: Float tensor `[B]`. 1 (or more) keeps all words. At least one word is kept.
        min_p: Float tensor `[B]`. Keeps words with at least this fraction of the highest
            probability: 0 (or less) keeps all words, and 1 (or more) only the most probable ones.
    """

    def __init__(self, temperature, top_k, top_p, min_p):
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p

    def choose(self, log_probs, uniforms):
        sorted_log_probs, words = ops.top_k(log_probs, log_probs.shape[-1])  # [B, V]
        is_greedy = ops.logical_not(self.temperature > 0)  # NaN too
        temperature = ops.where(is_greedy, 1.0, self.temperature)[:, None]
        kept = ops.where(self.top_k > 0, self.top_k, log_probs.shape[-1])
        kept = ops.where(is_greedy, 1, kept)[:, None]  # [B, 1]
        positions = ops.arange(log_probs.shape[-1], dtype="int32")  # [V]
        log_ratios = sorted_log_probs - sorted_log_probs[:, :1]  # 0 for the most probable
        scores = ops.where(positions < kept, log_ratios / temperature, -float("inf"))
        nucleus = keep_top_p(ops.softmax(scores, axis=-1), self.top_p[:, None])
        least = nucleus[:, :1] * ops.minimum(self.min_p, 1.0)[:, None]  # [B, 1]
        place = draw(ops.where(nucleus < least, 0.0, nucleus), uniforms)
        return ops.take_along_axis(words, place[:, None], axis=-1)[:, 0]
