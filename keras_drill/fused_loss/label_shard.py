"""The part of the labels that one device has, and sums over all devices.

Shape letters: see `walk`.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_drill.types import Tensor

# The score of a padding row on the last device: its exponential is 0, its square is finite.
NEVER = -1e9


class LabelShard(NamedTuple):
    """The labels from `first` on that one device has, or all labels if they are not split.

    The methods communicate over all devices of `axis`, so all these devices must call a method.

    Attributes:
        num_labels: M, the number of labels of all devices, without padding rows.
        size: Number of rows of a device, equal on all devices.
        first: Index of this device's first label; a scalar tensor if there are several devices.
        axis: Name of the mesh axis over which the labels are split, or `None`.
        token_axis: Name of the mesh axis over which the tokens are split, or `None`.
        is_filled_up: Whether a device has padding rows.
    """

    num_labels: int
    size: int
    first: Any = 0
    axis: str | None = None
    token_axis: str | None = None
    is_filled_up: bool = False

    def maximum(self, x: Tensor) -> Tensor:
        return x if self.axis is None else _lax().pmax(x, self.axis)

    def sum(self, x: Tensor) -> Tensor:
        return x if self.axis is None else _lax().psum(x, self.axis)

    def most_tiles(self, number: Tensor) -> Tensor:
        """Returns the largest number of tiles of any device. All devices compute this number."""
        if self.axis is None or self.token_axis is None:
            return number
        return _lax().pmax(number, self.token_axis)

    def log_sum_exp(self, x: Tensor) -> Tensor:
        """Returns the logarithm of the sum of `exp(x)` over devices."""
        if self.axis is None:
            return x
        top = self.maximum(x)
        return top + ops.log(self.sum(ops.exp(x - top)))

    def has(self, columns: Tensor) -> Tensor | None:
        """Returns whether each column is on this device; `None` if the device has all labels."""
        if self.axis is None:
            return None
        return ops.logical_and(columns >= 0, columns < self.size)

    def only_here(self, x: Tensor, columns: Tensor) -> Tensor:
        """Returns `x` if this device has the column, else 0, for a sum over devices."""
        here = self.has(columns)
        return x if here is None else ops.where(here, x, ops.zeros_like(x))

    def clear(self, x: Tensor) -> Tensor:
        """Returns `x` `[size]` with zeros in padding rows."""
        exists = self.exists(0, self.size)
        return x if exists is None else ops.where(exists, x, ops.zeros_like(x))

    def exists(self, start: int, size: int) -> Tensor | None:
        """Returns whether each of `size` rows from `start` on is a label; `None` if all are."""
        if not self.is_filled_up:
            return None
        return self.first + start + ops.arange(size, dtype="int32") < self.num_labels


def _lax():
    import jax

    return jax.lax
