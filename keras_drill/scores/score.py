from abc import ABC, abstractmethod

import keras
from keras import ops

from keras_drill.ops.saturated import saturated
from keras_drill.types import Initializer, Tensor, Tensors


class Score(ABC):
    """Base class for scores, which compare context vectors with labels (output embeddings).

    Pass a score to `keras_drill.OutputLayer`, which calls its methods. Contexts are the vectors
    that the output layer computes from hidden states for this comparison. A score is an
    element-wise function of the inner product of context h and label e, and of *terms*: a few
    numbers for each context and for each label, for example their norms.

        score(h, e) = F(h . e; terms(h), terms(e, parameters))

    The loss of the output layer computes the matrix products itself, for one group of rows after
    another. The score computes only cheap, element-wise operations and their gradients. A score has
    no state. The output layer, or its tied embedding, stores trainable parameters of labels, for
    example a kernel's width, and passes them as `parameters`, a tuple of tensors `[M]`.

    Subclasses implement `of_products`, `product_gradients`, `pair_scores` and `pair_gradients`. For
    a score with terms, they also override `hidden_terms`, `label_terms`, `hidden_gradients`,
    `label_gradients` and the attributes below.

    Shape letters: R rows (context vectors) of width d, M labels. In `pair_scores` and
    `pair_gradients`, S is the number of labels of each row, for example the senses of its target.
    The compute dtype is the dtype of the contexts and labels. The accumulator's dtype is float32,
    or float64 if the compute dtype is float64.

    Attributes:
        parameter_initializers: Dictionary from the name of every parameter to its initializer, in
            the order of `parameters`. Empty by default.
        num_label_sums: Number of tensors in the third result of `product_gradients`. 0 by default.
        is_linear: Whether the score is the inner product itself. `False` by default.
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
            parameters: Tuple of tensors `[M]` in the accumulator's dtype.

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
        """Computes the terms of contexts `hidden` `[R, d]`. Returns an empty tuple by default.

        The result is a tuple of tensors `[R, 1]` in the accumulator's dtype.
        """
        return ()

    def label_terms(self, labels: Tensor, parameters: Tensors) -> Tensors:
        """Computes the terms of `labels` `[M, d]`. Returns an empty tuple by default.

        The result is a tuple of tensors `[M]` in the accumulator's dtype. `parameters` is as in
        `scores`.
        """
        return ()

    @abstractmethod
    def of_products(self, products: Tensor, hidden_terms: Tensors, label_terms: Tensors) -> Tensor:
        """Computes scores from inner products.

        Args:
            products: `[R, M]` in the accumulator's dtype, inner products of contexts and labels.
            hidden_terms: Output of the method `hidden_terms`, a tuple of tensors `[R, 1]`.
            label_terms: Output of the method `label_terms`, a tuple of tensors `[M]`, or `[R, M]`
                if every row has its own labels.

        Returns:
            Scores `[R, M]`, in the accumulator's dtype.
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
            row_weights: `[R]`, factors of the rows of `derivative`. They are a separate argument so
                that the large matrix need not be scaled.
            products, hidden_terms, label_terms: As in `of_products`.

        Returns:
            - `[R, M]`, the gradient with respect to the products, without row weights.
            - A tuple of tensors `[R]`, sums over the labels without row weights, for example the
              gradients with respect to `hidden_terms`. They are the input of `hidden_gradients`.
            - A tuple of tensors `[M]`, sums over the rows with row weights, for example the
              gradients with respect to `label_terms`. They are the input of `label_gradients`.
        """

    def product_sums(
        self,
        by_products: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensors, Tensors] | None:
        """Computes the second and third result of `product_gradients`, given the first.

        The loss of the output layer calls this method on JAX with accelerators, so that no further
        matrix `[R, M]` is stored. Subclasses need not override this method.

        Args:
            by_products: `[R, M]` in the accumulator's dtype, the gradient with respect to the
                products. Its values have been rounded to the compute dtype.
            row_weights, products, hidden_terms, label_terms: As in `product_gradients`.

        Returns:
            The two tuples of sums, or `None` (the default) to use those of `product_gradients`.
        """
        return None

    def hidden_gradients(
        self, gradient: Tensor, hidden_sums: Tensors, hidden: Tensor, hidden_terms: Tensors
    ) -> Tensor:
        """Computes the whole gradient with respect to the contexts.

        Args:
            gradient: `[R, d]`, the part of the gradient that passes through the products. Without
                terms this is the whole gradient, which the method returns by default.
            hidden_sums: The second result of `product_gradients`, which the caller has multiplied
                by `row_weights`.
            hidden: `[R, d]`, the contexts.
            hidden_terms: Output of the method `hidden_terms`.

        Returns:
            The gradient `[R, d]`, in the dtype of `gradient`.
        """
        return gradient

    def label_gradients(
        self, gradient: Tensor, label_sums: Tensors, labels: Tensor, label_terms: Tensors
    ) -> tuple[Tensor | None, Tensors]:
        """Computes the gradients that pass through the label terms, of labels and parameters.

        Args:
            gradient: `[M, d]`, the part of the labels' gradient that passes through the products.
            label_sums: The third result of `product_gradients`, summed over all rows of the batch.
            labels: `[M, d]`.
            label_terms: Output of the method `label_terms`.

        Returns:
            The part `[M, d]` of the labels' gradient that passes through the label terms, which the
            caller adds to `gradient`, or `None` (the default) for no such part; and a tuple of the
            parameters' gradients, tensors `[M]`.
        """
        return None, ()

    @abstractmethod
    def pair_scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        """Computes the scores of every row with its own S labels.

        Automatic differentiation of the result must give the gradients with respect to all
        arguments.

        Args:
            hidden: `[..., d]`, contexts.
            labels: `[..., S, d]`, the labels of each context.
            parameters: Sequence of tensors `[..., S]`, the parameters of these labels.

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
            The gradients with respect to `hidden`, `labels` and, in a tuple, `parameters`, of the
            shapes of these arguments and in the accumulator's dtype.
        """

    def get_config(self) -> dict:
        """Returns the constructor arguments, a dictionary; `from_config` makes an equal score."""
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Score":
        return cls(**config)
