"""The labels of a walk that one device has, and how it adds up with those that have the others.

Shape letters: see `tile_walk`.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_drill.types import Tensor

# The score of a row that only fills up the last device's: its exponential is 0, its square finite.
NEVER = -1e9


class LabelShard(NamedTuple):
    """Some of the labels, those that follow label `first`; all of them where nothing is split.

    Its methods go through all devices of `axis`, each of which has to call them.

    Attributes:
        num_labels: M, labels of all devices, without the rows that fill up the last one's.
        size: Rows of this device, the same on each.
        first: Number of this device's first label, a scalar tensor where there are several.
        axis: Name of the mesh's axis that the labels are split over, or `None`.
        token_axis: Name of the one that the tokens are split over, or `None`.
        is_filled_up: Whether rows of some device are no labels.
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
        """The largest number that a device has, so that each takes part in what others send."""
        if self.axis is None or self.token_axis is None:
            return number
        return _lax().pmax(number, self.token_axis)

    def log_sum_exp(self, x: Tensor) -> Tensor:
        """The logarithm of what the exponentials of all devices' `x` add up to."""
        if self.axis is None:
            return x
        top = self.maximum(x)
        return top + ops.log(self.sum(ops.exp(x - top)))

    def has(self, columns: Tensor) -> Tensor | None:
        """Which columns, counted from `first` on, are of this device; `None` for all."""
        if self.axis is None:
            return None
        return ops.logical_and(columns >= 0, columns < self.size)

    def only_here(self, x: Tensor, columns: Tensor) -> Tensor:
        """`x` where this device has the columns, 0 elsewhere: to be added up."""
        here = self.has(columns)
        return x if here is None else ops.where(here, x, ops.zeros_like(x))

    def clear(self, x: Tensor) -> Tensor:
        """`[size]` with zeros in rows that are no labels."""
        exists = self.exists(0, self.size)
        return x if exists is None else ops.where(exists, x, ops.zeros_like(x))

    def exists(self, start: int, size: int) -> Tensor | None:
        """Which of `size` rows from `start` on are labels; `None` for all."""
        if not self.is_filled_up:
            return None
        return self.first + start + ops.arange(size, dtype="int32") < self.num_labels


def _lax():
    import jax

    return jax.lax
