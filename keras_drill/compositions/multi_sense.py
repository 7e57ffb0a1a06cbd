import keras
from keras import ops

from keras_drill.compositions.composition import Composition
from keras_drill.ops.shared_embedding import replace_sublayer
from keras_drill.senses.sense_allocation import SenseAllocation


@keras.saving.register_keras_serializable(package="keras_drill")
class MultiSense(Composition):
    """Several labels a word: the probability of a word is the sum of its senses' probabilities.

        log p(y) = lse(scores of y's senses) - lse(scores of all senses)

    Args:
        vocabulary_size: Number of words V.
        num_senses: Number of senses M; `None` is three a word.
        min_senses: Fewest senses of a word.
        max_senses: Most senses of a word.
        dynamic: Whether senses may move from word to word.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Attributes:
        allocation: `keras_drill.senses.SenseAllocation`, which sense belongs to which word.

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274)
    """

    one_label_per_word = False

    def __init__(
        self, vocabulary_size, num_senses=None, min_senses=1, max_senses=4, dynamic=True, **kwargs
    ):
        super().__init__(**kwargs)
        self.allocation = SenseAllocation(
            vocabulary_size, num_senses, min_senses, max_senses, dynamic, name="allocation"
        )

    def share(self, allocation: SenseAllocation):
        """Takes over the allocation of a sense embedding that the output layer is tied to."""
        replace_sublayer(self, "allocation", allocation)

    def num_labels(self, vocabulary_size):
        if vocabulary_size != self.allocation.vocabulary_size:
            raise ValueError(
                f"`vocabulary_size` must be that of the senses, {self.allocation.vocabulary_size}. "
                f"Received: vocabulary_size={vocabulary_size}"
            )
        return self.allocation.num_senses

    def contexts(self, hidden, training=None):
        return ops.reshape(hidden, (-1, 1, hidden.shape[-1])), None

    def columns(self, targets):
        return self.allocation.columns(targets)

    def log_probs(self, scores, log_priors):
        return self.word_log_probs(ops.log_softmax(scores[:, 0]))

    def word_log_probs(self, sense_log_probs):
        """`[..., M]` log-probabilities of senses to those `[..., V]` of words."""
        columns, mask = self.allocation.columns(ops.arange(self.allocation.vocabulary_size))
        senses = ops.take(sense_log_probs, columns, axis=-1)  # [..., V, S]
        return ops.logsumexp(ops.where(mask, senses, ops.full_like(senses, float("-inf"))), -1)

    def record(self, targets, log_probs, posteriors, weights):
        if self.allocation.dynamic:
            if posteriors is None:  # at most one sense a word
                posteriors = ops.ones_like(log_probs)[:, None]
            self.allocation.record(targets, log_probs, posteriors, weights)

    def get_config(self) -> dict:
        return {**super().get_config(), **self.allocation.arguments}
