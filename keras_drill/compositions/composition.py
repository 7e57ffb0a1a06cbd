from abc import ABC, abstractmethod

import keras

from keras_drill.fused_loss.inputs import WordLabels
from keras_drill.types import Shape, Tensor


class Composition(keras.layers.Layer, ABC):
    """Turns scores of labels into probabilities of words.

    A composition defines for the fused loss which contexts to score, and which labels (columns of
    the score matrix) sum to a target's probability:

        log p(y) = lse_k( log_prior_k + lse(scores_k[columns of y]) - lse(scores_k) )

    Shape letters: N tokens, K contexts per token, M labels, S columns per target, V words.

    Attributes:
        num_contexts: K.
        has_logits: Whether there are scores of words, `logits`, whose log-softmax `log_probs` is.
    """

    has_logits = False

    @property
    def num_contexts(self) -> int:
        return 1

    def build(self, hidden_shape: Shape, embeddings_shape: tuple[int, int]) -> None:
        """Creates the weights, for hidden states `[..., d_h]` and embeddings `[M, d]`."""
        self.built = True

    def context_shape(self, hidden_shape: Shape) -> Shape:
        """Shape of the contexts but for N and K, which a label encoder gets to see."""
        return tuple(hidden_shape)

    def num_labels(self, vocabulary_size: int) -> int:
        """Number of labels M of `vocabulary_size` words."""
        return vocabulary_size

    def words_of_labels(self) -> Tensor | None:
        """`[M]`, the word of every label, or `None` where label j is the only label of word j."""
        return None

    @abstractmethod
    def contexts(
        self, hidden: Tensor, training: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """`[..., d_h]` hidden states to contexts `[N, K, d]` and log-priors `[N, K]`, None where
        K = 1."""

    @abstractmethod
    def columns(self, targets: Tensor) -> tuple[Tensor, Tensor | None]:
        """`[N]` targets to the columns `[N, S]` that make them up, and their mask or None."""

    def word_labels(self) -> WordLabels | None:
        """`keras_drill.fused_loss.inputs.WordLabels`, or `None` where label j is the only label
        of word j."""
        return None

    @abstractmethod
    def log_probs(self, scores: Tensor, log_priors: Tensor | None) -> Tensor:
        """`[N, K, M]` scores and `[N, K]` log-priors to log-probabilities `[N, V]` of words."""

    def logits(self, scores: Tensor) -> Tensor:
        """`[N, K, M]` scores to those `[N, V]` of words, where `has_logits`."""
        raise NotImplementedError

    def record(
        self,
        targets: Tensor,
        log_probs: Tensor,
        posteriors: Tensor | None,
        weights: Tensor | None,
    ) -> None:
        """Records the tokens of a training step, after their loss.

        Args:
            targets, log_probs: `[N]`, the words and their log-probabilities.
            posteriors: `[N, S]`, probabilities of the target's labels given the target, or `None`
                where S = 1.
            weights: `[N]`, or `None`.
        """
        return  # TensorFlow's AutoGraph cannot convert a function of a docstring alone

    def constant_copy(self) -> "Composition":
        """A composition of the same config for inference, not built yet, that shares nothing."""
        return type(self).from_config(self.get_config())

    def get_config(self) -> dict:
        return super().get_config()  # overridden, or Keras would refuse a DTypePolicy as `dtype`
