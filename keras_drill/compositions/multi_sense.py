from typing import Any

import keras
from keras import ops

from keras_drill.compositions.composition import Composition
from keras_drill.fused_loss.inputs import WordLabels
from keras_drill.ops.private_interfaces import replace_sublayer
from keras_drill.ops.word_log_probs import word_log_probs
from keras_drill.senses.sense_allocation import SenseAllocation
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class MultiSense(Composition):
    """Several labels (senses) per word, whose probabilities sum to the word's probability.

    Labels are output embeddings. For a word y,

        log p(y) = lse(scores of y's senses) - lse(scores of all senses)

    lse is the logarithm of the sum of exponentials. Pass the composition to
    `keras_drill.OutputLayer` as `composition`, or use `keras_drill.KernelizedBayesianSoftmax`.

    Args:
        vocabulary_size: Number of words V.
        num_senses: Number of senses M of all words together; `None` is three per word.
        min_senses: Fewest senses that a word may have.
        max_senses: Most senses that a word may have.
        dynamic: Whether `keras_drill.SenseReallocation` may move senses from word to word.
        usage_by: Measure of a sense's usage, by which senses are chosen to move: "posterior" or
            "probability", see `keras_drill.senses.SenseAllocation`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Attributes:
        allocation: `keras_drill.senses.SenseAllocation`, which stores the word of each sense.

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274)
    """

    has_logits = True

    def __init__(
        self,
        vocabulary_size: int,
        num_senses: int | None = None,
        min_senses: int = 1,
        max_senses: int = 4,
        dynamic: bool = True,
        usage_by: str = "posterior",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.allocation = SenseAllocation(
            vocabulary_size,
            num_senses,
            min_senses,
            max_senses,
            dynamic,
            usage_by,
            name="allocation",
        )

    def share(self, allocation: SenseAllocation) -> None:
        """Replaces the attribute `allocation`.

        An output layer calls this method to share the allocation of its tied input embedding.
        """
        replace_sublayer(self, "allocation", allocation)

    def num_labels(self, vocabulary_size: int) -> int:
        if vocabulary_size != self.allocation.vocabulary_size:
            raise ValueError(
                f"`vocabulary_size` must be {self.allocation.vocabulary_size}, the number of words "
                f"of `composition`. Received: vocabulary_size={vocabulary_size}"
            )
        return self.allocation.num_senses

    def contexts(self, hidden: Tensor, training: bool | None = None) -> tuple[Tensor, None]:
        return ops.reshape(hidden, (-1, 1, hidden.shape[-1])), None

    def columns(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        return self.allocation.columns(targets)

    def words_of_labels(self) -> Tensor:
        # A tensor, because custom gradients on TensorFlow do not accept variables.
        return ops.reshape(self.allocation.sense_to_word, (-1,))

    def word_labels(self) -> WordLabels:
        words = ops.arange(self.allocation.vocabulary_size)
        return WordLabels(*self.allocation.columns(words), self.words_of_labels())

    def log_probs(self, scores: Tensor, log_priors: Tensor | None) -> Tensor:
        return ops.log_softmax(self.logits(scores))  # fewer words than senses

    def logits(self, scores: Tensor) -> Tensor:
        return self.word_log_probs(scores[:, 0])

    def word_log_probs(self, sense_log_probs: Tensor) -> Tensor:
        """Computes log-probabilities of words `[..., V]` from those of senses `[..., M]`.

        The method also maps logits of senses to logits of words: a constant that is added to all
        senses of a row is added to all words of the row.
        """
        columns, mask = self.allocation.columns(ops.arange(self.allocation.vocabulary_size))
        rows = ops.reshape(sense_log_probs, (-1, sense_log_probs.shape[-1]))
        words = word_log_probs(rows, columns, mask)
        return ops.reshape(words, (*ops.shape(sense_log_probs)[:-1], words.shape[-1]))

    def record(
        self,
        targets: Tensor,
        log_probs: Tensor,
        posteriors: Tensor | None,
        weights: Tensor | None,
    ) -> None:
        if self.allocation.dynamic:
            if posteriors is None:  # at most one sense per word
                posteriors = ops.ones_like(log_probs)[:, None]
            self.allocation.record(targets, log_probs, posteriors, weights)

    def constant_copy(self) -> "MultiSense":
        return type(self).from_config({**self.get_config(), "dynamic": False})

    def get_config(self) -> dict:
        return {**super().get_config(), **self.allocation.arguments}
