from abc import ABC, abstractmethod

import keras
from keras import ops

from keras_drill.ops.saturated import saturated
from keras_drill.types import Initializer, Tensor, Tensors


class Score(ABC):
    """Base class for scores, which compare context vectors with labels.

    A score is an element-wise function of the inner product of context and label, and of *terms*: a
    few numbers for each context and for each label, for example their norms.

        score(h, e) = F(h . e; terms(h), terms(e, parameters))

    The fused loss computes the matrix products itself, and the score computes only cheap,
    element-wise operations and their gradients. A score has no state. Parameters that belong to
    labels, for example a kernel's width, are passed as `parameters`: a tuple of tensors whose
    first axis is the number of labels M.

    Shape letters: R rows (context vectors) of width d, M labels, S labels of a single row. The
    compute dtype is the dtype of the contexts and labels. The accumulator's dtype is float32, or
    float64 if the compute dtype is float64.

    Attributes:
        parameter_initializers: Name and initializer of every parameter, in order.
        num_label_sums: Number of `label_sums` that `product_gradients` returns.
        is_linear: Whether the score is the inner product itself.
    """

    is_linear = False

    @property
    def parameter_initializers(self) -> dict[str, Initializer]:
        return {}

    @property
    def num_label_sums(self) -> int:
        return 0

    def scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        """Computes the scores of every row with every label.

        Args:
            hidden: `[R, d]`, in the compute dtype.
            labels: `[M, d]`, in the compute dtype.
            parameters: Tuple of tensors in the accumulator's dtype.

        Returns:
            `[R, M]` in the accumulator's dtype.
        """
        return self.scores_of_terms(hidden, labels, self.label_terms(labels, parameters))

    def scores_of_terms(self, hidden: Tensor, labels: Tensor, label_terms: Tensors) -> Tensor:
        """Computes `scores` from label terms that were computed before.

        Inference loops call this method, since their labels stay constant.

        Args:
            hidden, labels: As in `scores`.
            label_terms: Output of the method `label_terms`.

        Returns:
            The output of `scores`.
        """
        is_double = keras.backend.standardize_dtype(hidden.dtype) == "float64"
        products = saturated(
            ops.einsum("rd,md->rm", hidden, labels), "float64" if is_double else "float32"
        )
        return self.of_products(products, self.hidden_terms(hidden), label_terms)

    def hidden_terms(self, hidden: Tensor) -> Tensors:
        """Computes the terms of `hidden` `[R, d]`: tensors `[R, 1]` in the accumulator's dtype."""
        return ()

    def label_terms(self, labels: Tensor, parameters: Tensors) -> Tensors:
        """Computes the terms of `labels` `[M, d]`: tensors `[M]` in the accumulator's dtype."""
        return ()

    @abstractmethod
    def of_products(self, products: Tensor, hidden_terms: Tensors, label_terms: Tensors) -> Tensor:
        """Computes scores from inner products.

        Args:
            products: `[R, M]` in the accumulator's dtype, inner products.
            hidden_terms: Tuple of tensors `[R, 1]`.
            label_terms: Tuple of tensors `[M]`, or `[R, M]` if every row has its own labels.

        Returns:
            `[R, M]`.
        """

    @abstractmethod
    def product_gradients(
        self,
        derivative: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensor, Tensors, Tensors]:
        """Computes gradients of a loss from its gradient with respect to the scores.

        Args:
            derivative: `[R, M]` in the accumulator's dtype. `row_weights[:, None] * derivative` is
                the gradient with respect to the scores.
            row_weights: `[R]`, separate so that the large matrix need not be scaled.
            products, hidden_terms, label_terms: As in `of_products`.

        Returns:
            - `[R, M]`, the gradient with respect to the products, without row weights.
            - A tuple of tensors `[R]`, the gradients with respect to `hidden_terms`, summed over
              the labels, without row weights; an input of `hidden_gradients`.
            - A tuple of tensors `[M]`, the gradients with respect to `label_terms`, summed over the
              rows, with row weights; an input of `label_gradients`.
        """

    def product_sums(
        self,
        by_products: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensors, Tensors] | None:
        """Computes the two tuples of sums of `product_gradients`, given its first output.

        The fused loss calls this method on JAX with accelerators, so that no further matrix
        `[R, M]` is stored.

        Args:
            by_products: `[R, M]` in the accumulator's dtype, the gradient with respect to the
                products. Its values have been rounded to the compute dtype.
            row_weights, products, hidden_terms, label_terms: As in `product_gradients`.

        Returns:
            The sums, or `None` to use those of `product_gradients`.
        """
        return None

    def hidden_gradients(
        self, gradient: Tensor, hidden_sums: Tensors, hidden: Tensor, hidden_terms: Tensors
    ) -> Tensor:
        """Computes the whole gradient for `hidden` `[R, d]`.

        Args:
            gradient: `[R, d]`, the part of the gradient that passes through the products.
            hidden_sums: The sums over labels that `product_gradients` returned, times the row
                weights.
            hidden: `[R, d]`.
            hidden_terms: Output of the method `hidden_terms`.

        Returns:
            `[R, d]`.
        """
        return gradient

    def label_gradients(
        self, gradient: Tensor, label_sums: Tensors, labels: Tensor, label_terms: Tensors
    ) -> tuple[Tensor | None, Tensors]:
        """Computes the rest of the gradient for `labels`, and the gradients for the parameters.

        Args:
            gradient: `[M, d]`, the part of the gradient that passes through the products.
            label_sums: The sums that `product_gradients` returned, over all rows.
            labels: `[M, d]`.
            label_terms: Output of the method `label_terms`.

        Returns:
            `[M, d]` to be added to `gradient`, or `None`; and a tuple of tensors `[M]`, one for
            each parameter.
        """
        return None, ()

    @abstractmethod
    def pair_scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        """Computes the scores of every row with its own S labels. The result is differentiable.

        Args:
            hidden: `[..., d]`.
            labels: `[..., S, d]`.
            parameters: Sequence of tensors `[..., S]`.

        Returns:
            `[..., S]` in the accumulator's dtype.
        """

    @abstractmethod
    def pair_gradients(
        self, derivative: Tensor, hidden: Tensor, labels: Tensor, parameters: Tensors
    ) -> tuple[Tensor, Tensor, Tensors]:
        """Computes gradients of a loss from its gradient with respect to `pair_scores`.

        Args:
            derivative: `[..., S]`, the gradient with respect to `pair_scores`.
            hidden, labels, parameters: As in `pair_scores`.

        Returns:
            Gradients for hidden `[..., d]`, for labels `[..., S, d]` and, in a tuple, for the
            parameters `[..., S]`, in the accumulator's dtype.
        """

    def get_config(self) -> dict:
        """Returns the constructor arguments: `type(self)(**config)` is an equal score."""
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Score":
        return cls(**config)
