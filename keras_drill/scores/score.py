from abc import ABC, abstractmethod

import keras
from keras import ops

from keras_drill.ops.saturated import saturated
from keras_drill.types import Initializer, Tensor, Tensors


class Score(ABC):
    """Compares context vectors with labels, and knows its own derivative.

    A score is a function of the inner product of context and label, entry by entry, and of a few
    numbers for each context and for each label, its *terms* (a norm, say):

        score(h, e) = F(h . e; terms(h), terms(e, parameters))

    So the fused loss multiplies matrices itself, and a score only computes cheap, element-wise
    operations. A score has no state: parameters that belong to labels (a kernel's width, say) are
    handed to it as `parameters`, a tuple of tensors whose first axis is the number of labels M.

    The inner product itself needs nothing but the defaults of this class.

    Attributes:
        parameter_initializers: Name and initializer of every parameter, in order.
        num_label_sums: Number of `label_sums` that `product_gradients` returns.
        is_linear: Whether a score is its inner product, as it is.
    """

    is_linear = False

    @property
    def parameter_initializers(self) -> dict[str, Initializer]:
        return {}

    @property
    def num_label_sums(self) -> int:
        return 0

    def scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        """Scores of every row against every label.

        Args:
            hidden: `[R, d]`, in the compute dtype.
            labels: `[M, d]`, in the compute dtype.
            parameters: Tuple of tensors in the accumulator's dtype.

        Returns:
            `[R, M]` in the accumulator's dtype (float32, or float64 for float64 models).
        """
        return self.scores_of_terms(hidden, labels, self.label_terms(labels, parameters))

    def scores_of_terms(self, hidden: Tensor, labels: Tensor, label_terms: Tensors) -> Tensor:
        """`scores`, for loops in which the labels stay as they are: not to be differentiated.

        Args:
            hidden, labels: As in `scores`.
            label_terms: Output of `label_terms`.
        """
        is_double = keras.backend.standardize_dtype(hidden.dtype) == "float64"
        products = saturated(
            ops.einsum("rd,md->rm", hidden, labels), "float64" if is_double else "float32"
        )
        return self.of_products(products, self.hidden_terms(hidden), label_terms)

    def hidden_terms(self, hidden: Tensor) -> Tensors:
        """Tensors `[R, 1]` in the accumulator's dtype, made from `hidden` `[R, d]`."""
        return ()

    def label_terms(self, labels: Tensor, parameters: Tensors) -> Tensors:
        """Tensors `[M]` in the accumulator's dtype, made from `labels` `[M, d]` and parameters."""
        return ()

    @abstractmethod
    def of_products(self, products: Tensor, hidden_terms: Tensors, label_terms: Tensors) -> Tensor:
        """Scores of inner products.

        Args:
            products: `[R, M]` in the accumulator's dtype.
            hidden_terms: Tuple of `[R, 1]`.
            label_terms: Tuple of `[M]`, or `[R, M]` where every row has labels of its own.

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
        """Derivatives of a loss, from its derivative with respect to the scores.

        The latter is `row_weights * derivative`.

        Args:
            derivative: `[R, M]` in the accumulator's dtype.
            row_weights: `[R]`, kept apart so that the large matrix need not be scaled.
            products, hidden_terms, label_terms: As given to `of_products`.

        Returns:
            The derivative with respect to the products `[R, M]`, without row weights; sums over the
            labels, a tuple of `[R]`, for `hidden_gradients`, without row weights; and sums over the
            rows, a tuple of `[M]`, for `label_gradients`, with row weights.
        """

    def product_sums(
        self,
        by_products: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensors, Tensors] | None:
        """The sums that `product_gradients` returns, computed from its first result.

        JAX calls this method on accelerators, with the first result rounded to the compute dtype,
        and stores no further matrix `[R, M]`. `None` keeps the sums of `product_gradients`.

        Args:
            by_products: `[R, M]` in the accumulator's dtype.
            row_weights, products, hidden_terms, label_terms: As given to `product_gradients`.
        """
        return None

    def hidden_gradients(
        self, gradient: Tensor, hidden_sums: Tensors, hidden: Tensor, hidden_terms: Tensors
    ) -> Tensor:
        """The whole gradient for `hidden` `[R, d]`.

        Args:
            gradient: `[R, d]`, the part that goes through the products.
            hidden_sums: As `product_gradients` returned them, row weights included.
            hidden, hidden_terms: As before.
        """
        return gradient

    def label_gradients(
        self, gradient: Tensor, label_sums: Tensors, labels: Tensor, label_terms: Tensors
    ) -> tuple[Tensor | None, Tensors]:
        """Remaining terms of the gradient with respect to `labels`, and the parameters' gradients.

        Args:
            gradient: `[M, d]`, the part that goes through the products.
            label_sums: As `product_gradients` returned them, summed over all rows.
            labels, label_terms: As before.

        Returns:
            `None`, or `[M, d]` to be added to `gradient`, and a tuple of `[M]`.
        """
        return None, ()

    @abstractmethod
    def pair_scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        """Scores of every row against some labels of its own, differentiable.

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
        """Gradients of a loss, from its derivative with respect to `pair_scores`.

        Returns:
            Gradients for hidden `[..., d]`, for labels `[..., S, d]` and, in a tuple, for the
            parameters `[..., S]`, in the accumulator's dtype.
        """

    def get_config(self) -> dict:
        """Constructor arguments, so that `type(self)(**config)` makes an equal score."""
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Score":
        return cls(**config)
