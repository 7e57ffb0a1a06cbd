from abc import ABC, abstractmethod

import keras

from keras_drill.fused_loss.inputs import WordLabels
from keras_drill.types import Shape, Tensor


class Composition(keras.layers.Layer, ABC):
    """Base class for compositions, which turn scores of labels into probabilities of words.

    Pass a composition to `keras_drill.OutputLayer`, which calls its methods. Labels are output
    embeddings. A composition defines which vectors (contexts) are compared with the labels, and
    which labels (columns of the matrix of scores) contribute to the probability of a word y:

        log p(y) = lse_k( log_prior_k + lse(scores_k[columns of y]) - lse(scores_k) )

    lse is the logarithm of the sum of exponentials, and lse_k is over the K contexts of a token.
    scores_k are the scores of context k with all labels, and log_prior_k is the logarithm of the
    probability of context k. Subclasses implement `contexts`, `columns` and `log_probs`.

    Shape letters: N tokens (of all axes `...` of the hidden states together), K contexts per token,
    M labels, S columns per target, V words, hidden states of width d_h, contexts of width d.

    Attributes:
        num_contexts: Number of contexts per token K. 1 by default.
        has_logits: Whether the method `logits` is available, and `log_probs` is its log-softmax.
            `False` by default.
    """

    has_logits = False

    @property
    def num_contexts(self) -> int:
        return 1

    def build(self, hidden_shape: Shape, embeddings_shape: tuple[int, int]) -> None:
        """Creates the weights, if any.

        Args:
            hidden_shape: Shape of the hidden states, `[..., d_h]`.
            embeddings_shape: Shape of the embeddings from which the labels are computed: M, and the
                width of an embedding.
        """
        self.built = True

    def context_shape(self, hidden_shape: Shape) -> Shape:
        """Returns a shape whose last entry is the width of the contexts; the others are ignored.

        The output layer builds its label encoder with this shape. By default, contexts are as wide
        as hidden states.

        Args:
            hidden_shape: Shape of the hidden states, `[..., d_h]`.
        """
        return tuple(hidden_shape)

    def num_labels(self, vocabulary_size: int) -> int:
        """Returns the number of labels M for `vocabulary_size` words, by default one per word."""
        return vocabulary_size

    def words_of_labels(self) -> Tensor | None:
        """Returns the word of every label, integers `[M]`.

        `None`, the default, means that word j has only label j. Subclasses with several labels per
        word override this method and `word_labels`.
        """
        return None

    @abstractmethod
    def contexts(
        self, hidden: Tensor, training: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Computes contexts from hidden states.

        Args:
            hidden: Hidden states `[..., d_h]`.
            training: Whether dropout is on.

        Returns:
            Contexts `[N, K, d]`; and the logarithms of their probabilities (`log_prior_k` of the
            class), `[N, K]`, or `None` if K is 1.
        """

    @abstractmethod
    def columns(self, targets: Tensor) -> tuple[Tensor, Tensor | None]:
        """Returns the labels of targets.

        Args:
            targets: `[N]` integers.

        Returns:
            The labels' indices, which are columns of the matrix of scores, integers `[N, S]`; and a
            mask `[N, S]`, False for padding, or `None` without padding.
        """

    def word_labels(self) -> WordLabels | None:
        """Returns the labels of all words as `keras_drill.fused_loss.inputs.WordLabels`.

        This named tuple has the fields `columns` `[V, S]`, the labels of every word; `mask`
        `[V, S]`, False for padding; and `words` `[M]`, the word of every label. `None`, the
        default, means that word j has only label j. Subclasses with several labels per word
        override this method and `words_of_labels`.
        """
        return None

    @abstractmethod
    def log_probs(self, scores: Tensor, log_priors: Tensor | None) -> Tensor:
        """Computes log-probabilities of all words.

        Args:
            scores: `[N, K, M]`, the scores of contexts and labels.
            log_priors: `[N, K]`, the second result of `contexts`, or `None` if K is 1.

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
        """Records statistics of tokens. The output layer calls this method after a training loss.

        By default, nothing is recorded.

        Args:
            targets, log_probs: `[N]`, the targets and their log-probabilities.
            posteriors: `[N, S]`, probabilities of the target's labels given the target, or `None`
                if S is 1.
            weights: `[N]`, the sample weights, or `None`.
        """
        return  # TensorFlow's AutoGraph cannot convert a function that has only a docstring

    def constant_copy(self) -> "Composition":
        """Returns a new, unbuilt composition for inference. By default, it has the same config.

        `OutputLayer.folded()` calls this method, builds the copy, and assigns to its variables the
        values of this composition's variables of the same names.
        """
        return type(self).from_config(self.get_config())

    def get_config(self) -> dict:
        return super().get_config()  # without this override Keras rejects a DTypePolicy as `dtype`
