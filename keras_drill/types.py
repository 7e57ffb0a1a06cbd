"""Names of what public functions take and give, for their type hints."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

# A tensor of a backend, a KerasTensor, or what converts to one; Keras has no type for it.
Tensor: TypeAlias = Any
# Several, in an order that the text says.
Tensors: TypeAlias = Sequence[Tensor]
# One entry per dimension, None where it is free.
Shape: TypeAlias = tuple[int | None, ...]

# What Keras resolves by `keras.<kind>.get`: a name, a configuration, an object, or a function.
Activation: TypeAlias = str | Mapping[str, Any] | Callable[..., Tensor] | None
Initializer: TypeAlias = str | Mapping[str, Any] | Callable[..., Tensor]
Regularizer: TypeAlias = str | Mapping[str, Any] | Callable[[Tensor], Tensor] | None
Constraint: TypeAlias = str | Mapping[str, Any] | Callable[[Tensor], Tensor] | None
