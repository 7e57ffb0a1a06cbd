from abc import ABC, abstractmethod

import keras

from keras_drill.fused_loss.inputs import WordLabels
from keras_drill.types import Shape, Tensor


class Composition(keras.layers.Layer, ABC):
    """Base class for compositions, which turn scores of labels into probabilities of words.

    A composition defines for the fused loss which contexts to score, and which labels (columns of
    the score matrix) contribute to a target's probability. With lse the logarithm of the sum of
    exponentials,

        log p(y) = lse_k( log_prior_k + lse(scores_k[columns of y]) - lse(scores_k) )

    Shape letters: N tokens, K contexts per token, M labels, S columns per target, V words.

    Attributes:
        num_contexts: Number of contexts per token K.
        has_logits: Whether the method `logits` is available, and `log_probs` is its log-softmax.
    """

    has_logits = False

    @property
    def num_contexts(self) -> int:
        return 1

    def build(self, hidden_shape: Shape, embeddings_shape: tuple[int, int]) -> None:
        """Creates the weights, for hidden states `[..., d_h]` and embeddings `[M, d]`."""
        self.built = True

    def context_shape(self, hidden_shape: Shape) -> Shape:
        """Returns the shape with which to build the label encoder for the contexts.

        Only the last entry matters, the width of the contexts.
        """
        return tuple(hidden_shape)

    def num_labels(self, vocabulary_size: int) -> int:
        """Returns the number of labels M for `vocabulary_size` words."""
        return vocabulary_size

    def words_of_labels(self) -> Tensor | None:
        """Returns the word of every label, `[M]`, or `None` if word j has only label j."""
        return None

    @abstractmethod
    def contexts(
        self, hidden: Tensor, training: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Computes contexts from hidden states.

        Args:
            hidden: `[..., d_h]`.
            training: Whether dropout is on.

        Returns:
            Contexts `[N, K, d]`; and the logarithms of their prior probabilities, `[N, K]`, or
            `None` if K is 1.
        """

    @abstractmethod
    def columns(self, targets: Tensor) -> tuple[Tensor, Tensor | None]:
        """Returns the labels of targets.

        Args:
            targets: `[N]` integers.

        Returns:
            Columns of the score matrix `[N, S]`, and a mask `[N, S]`, False for padding, or `None`
            without padding.
        """

    def word_labels(self) -> WordLabels | None:
        """Returns the labels of all words as `keras_drill.fused_loss.inputs.WordLabels`.

        `None` means that word j has only label j.
        """
        return None

    @abstractmethod
    def log_probs(self, scores: Tensor, log_priors: Tensor | None) -> Tensor:
        """Computes log-probabilities of words.

        Args:
            scores: `[N, K, M]`.
            log_priors: `[N, K]`, or `None` if K is 1.

        Returns:
            `[N, V]`.
        """

    def logits(self, scores: Tensor) -> Tensor:
        """Computes logits of words `[N, V]` from scores `[N, K, M]`, if `has_logits` is true."""
        raise NotImplementedError

    def record(
        self,
        targets: Tensor,
        log_probs: Tensor,
        posteriors: Tensor | None,
        weights: Tensor | None,
    ) -> None:
        """Records statistics of tokens, after the loss of a training step. By default, none.

        Args:
            targets, log_probs: `[N]`, the targets and their log-probabilities.
            posteriors: `[N, S]`, probabilities of the target's labels given the target, or `None`
                if S is 1.
            weights: `[N]`, the sample weights, or `None`.
        """
        return  # TensorFlow's AutoGraph cannot convert a function that has only a docstring

    def constant_copy(self) -> "Composition":
        """Returns a new, unbuilt composition with the same config, for inference."""
        return type(self).from_config(self.get_config())

    def get_config(self) -> dict:
        return super().get_config()  # without this override Keras rejects a DTypePolicy as `dtype`
