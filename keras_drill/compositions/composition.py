from abc import abstractmethod

import keras


class Composition(keras.layers.Layer):
    """Turns scores of labels into probabilities of words.

    The fused loss needs to know of a composition which contexts it scores against the labels, and
    which labels (columns of the score matrix) add up to a target's probability:

        log p(y) = lse_k( log_prior_k + lse(scores_k[columns of y]) - lse(scores_k) )

    Shape letters: N tokens, K contexts per token, M labels, S columns per target, V words.
    """

    def num_labels(self, vocabulary_size: int) -> int:
        """Number of labels M that stand for `vocabulary_size` words."""
        return vocabulary_size

    @abstractmethod
    def contexts(self, hidden, training=None):
        """`[N, d]` contexts to `[N, K, d]`, and their log-priors `[N, K]` (None where K = 1)."""

    @abstractmethod
    def columns(self, targets):
        """`[N]` targets to the columns `[N, S]` that make them up, and their mask or None."""

    @abstractmethod
    def log_probs(self, scores, log_priors):
        """`[N, K, M]` scores and `[N, K]` log-priors to log-probabilities `[N, V]` of words."""

    def get_config(self) -> dict:
        return super().get_config()  # overridden, or Keras would refuse a DTypePolicy as `dtype`
