import math
from typing import Any

import keras
from keras import ops

from keras_drill.types import Shape, Tensor

POSITIONS = ("sinusoidal", "learned")


@keras.saving.register_keras_serializable(package="keras_drill")
class PositionalEncoding(keras.layers.Layer):
    """Adds to each vector of a sequence another vector that encodes its position.

    The added vector of position t, from 0, is

    - "sinusoidal": sin(t r_i) for i = 0, ..., n - 1, then cos(t r_i) for the same i, with the rates
      r_i = 10000^{-i / (n - 1)} and n = d / 2 (rounded up for odd d, without the last cosine);
    - "learned": row t of a trainable table.

    Call arguments:
        x: `[B, T, d]`: B sequences, T positions, width d.
        start: Position of the first vector of each sequence: an integer, or integers `[B]`.
            Defaults to 0.
        mark_unknown: Whether the output is NaN at positions from `max_length` on. With `False`, the
            last row of the table is added there. Ignored with "sinusoidal". Defaults to `True`.

    Output shape: `[B, T, d]`.

    Args:
        kind: "sinusoidal" (no weights, any length) or "learned".
        max_length: Number of learned positions, `None` with "sinusoidal". A longer sequence raises
            an error if its length is static. If its length is only known at run time, see
            `mark_unknown`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = keras_drill.layers.PositionalEncoding()
    >>> tuple(layer(keras.ops.zeros((2, 3, 4))).shape)
    (2, 3, 4)

    References:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.5
    """

    def __init__(self, kind: str = "sinusoidal", max_length: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if kind not in POSITIONS:
            raise ValueError(f"`kind` must be one of {POSITIONS}. Received: kind={kind!r}")
        if (kind == "learned") != (max_length is not None):
            raise ValueError(
                "`max_length` must be an integer if `kind` is 'learned', else None. "
                f"Received: kind={kind!r}, max_length={max_length!r}"
            )
        self.kind = kind
        self.max_length = max_length
        self.supports_masking = True

    def build(self, x_shape: Shape) -> None:
        if self.kind == "learned":
            self.table = self.add_weight(
                shape=(self.max_length, x_shape[-1]), initializer="uniform", name="table"
            )

    def call(self, x: Tensor, start: int = 0, mark_unknown: bool = True) -> Tensor:
        length, width = x.shape[1], x.shape[-1]
        if self.max_length is not None and length is not None and length > self.max_length:
            raise ValueError(
                f"`x` must have at most `max_length`={self.max_length} positions. "
                f"Received: x of shape {tuple(x.shape)}"
            )
        positions = ops.arange(ops.shape(x)[1])[None, :]  # [1, T]
        positions = positions + ops.reshape(ops.cast(start, positions.dtype), (-1, 1))  # [B, T]
        if self.max_length is not None:
            encoding = ops.take(self.table, ops.minimum(positions, self.max_length - 1), axis=0)
            if mark_unknown:
                # An unknown length cannot raise an error while tracing: NaN shows it instead.
                is_row = (positions < self.max_length)[..., None]
                encoding = ops.where(is_row, encoding, ops.full_like(encoding, math.nan))
        else:
            count = (width + 1) // 2
            rates = ops.exp(
                ops.arange(count, dtype="float32") * (-math.log(10_000) / max(count - 1, 1))
            )
            angles = ops.cast(positions, "float32")[..., None] * rates  # [B, T, n]
            encoding = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)[..., :width]
        return x + ops.cast(encoding, x.dtype)

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape

    def get_config(self) -> dict:
        return {**super().get_config(), "kind": self.kind, "max_length": self.max_length}
