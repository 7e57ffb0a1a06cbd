"""Type aliases for the type hints of public functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

# A tensor of a backend, a KerasTensor, or a value that converts to one. Keras has no type for it.
Tensor: TypeAlias = Any
# Several tensors. The docstring of the function gives their order.
Tensors: TypeAlias = Sequence[Tensor]
# One size per axis; None if the size is unknown.
Shape: TypeAlias = tuple[int | None, ...]

# Arguments of `keras.<kind>.get`: a name, a config, an object, or a function.
Activation: TypeAlias = str | Mapping[str, Any] | Callable[..., Tensor] | None
Initializer: TypeAlias = str | Mapping[str, Any] | Callable[..., Tensor]
Regularizer: TypeAlias = str | Mapping[str, Any] | Callable[[Tensor], Tensor] | None
Constraint: TypeAlias = str | Mapping[str, Any] | Callable[[Tensor], Tensor] | None
