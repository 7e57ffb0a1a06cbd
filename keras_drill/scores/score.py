from abc import ABC, abstractmethod
from typing import ClassVar


class Score(ABC):
    """Compares context vectors with labels, and knows its own derivative.

    A score has no state: parameters that belong to labels (a kernel's width, say) are handed to it
    as `parameters`, a tuple of tensors whose first axis is the number of labels M.

    Attributes:
        parameter_initializers: Name and initializer of every parameter, in order.
    """

    parameter_initializers: ClassVar[dict] = {}

    @abstractmethod
    def scores(self, hidden, labels, parameters):
        """Scores of every row against every label.

        Args:
            hidden: `[R, d]`, in the compute dtype.
            labels: `[M, d]`, in the compute dtype.
            parameters: Tuple of tensors in the accumulator's dtype.

        Returns:
            `[R, M]` in the accumulator's dtype (float32, or float64 for float64 models).
        """

    def forward(self, hidden, labels, parameters):
        """`scores`, and what `gradients` wants kept of it.

        Returns:
            The scores `[R, M]`, and a residual: `None` or a tensor `[R, M]`.
        """
        return self.scores(hidden, labels, parameters), None

    @abstractmethod
    def gradients(self, derivative, row_weights, hidden, labels, parameters, residual):
        """Gradients of a loss whose derivative for `scores` is `row_weights * derivative`.

        Args:
            derivative: `[R, M]` in the accumulator's dtype.
            row_weights: `[R]`, kept apart so that the large matrix need not be scaled.
            hidden: `[R, d]`, as given to `forward`.
            labels: `[M, d]`, as given to `forward`.
            parameters: As given to `forward`.
            residual: As `forward` returned it.

        Returns:
            Gradients for hidden `[R, d]`, for labels `[M, d]` and, in a tuple, for the parameters,
            all in the accumulator's dtype.
        """

    @abstractmethod
    def pair_scores(self, hidden, labels, parameters):
        """Scores of every row against some labels of its own, differentiable.

        Args:
            hidden: `[..., d]`.
            labels: `[..., S, d]`.
            parameters: Sequence of tensors `[..., S]`.

        Returns:
            `[..., S]` in the accumulator's dtype.
        """

    @abstractmethod
    def pair_gradients(self, derivative, hidden, labels, parameters):
        """Gradients of a loss whose derivative for `pair_scores` is `derivative` `[..., S]`.

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
