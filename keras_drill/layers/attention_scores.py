"""Scores and windows for attention to a source.

A score measures how well a query matches a position of the source. A window limits the positions
that a query attends to.

Shape letters: B sequences, T positions of the decoder (queries), S positions of the source
(memory), a width of the keys.
"""

import abc
from typing import Any

import keras
from keras import ops

from keras_drill.types import Shape, Tensor


class AttentionScore(keras.layers.Layer, abc.ABC):
    """Base class of attention scores, which measure how well a query matches a source position.

    `keras_drill.layers.Attention` calls `score.keys(memory)` once for a source, and
    `score(query, keys)` for each tensor of queries. Subclasses implement `keys` and `call`, and
    create weights in `build(query_shape, memory_shape)`.

    Shape letters: B sequences, T queries (positions of the decoder) of width d_q, S positions of
    the source (memory) of width d_m, keys of a width a that the subclass chooses.
    """

    @abc.abstractmethod
    def keys(self, memory: Tensor) -> Tensor:
        """Computes keys `[B, S, a]` from the source `[B, S, d_m]`."""

    @abc.abstractmethod
    def call(self, query: Tensor, keys: Tensor) -> Tensor:
        """Computes scores `[B, T, S]` from queries `[B, T, d_q]` and keys."""


@keras.saving.register_keras_serializable(package="keras_drill")
class DotScore(AttentionScore):
    """Attention score, the dot product of a query h and a source vector s: `h · s`.

    Queries and source must have the same width. Pass the score to
    `keras_drill.layers.Attention`.

    Args:
        scaled: Whether to divide the score by the square root of the width.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), "dot"
    """

    def __init__(self, scaled: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.scaled = scaled

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        if query_shape[-1] != memory_shape[-1]:
            raise ValueError(
                "`DotScore` needs queries and a memory of the same width. Use GeneralScore for "
                f"other widths. Received: queries of shape {tuple(query_shape)}, memory of shape "
                f"{tuple(memory_shape)}"
            )

    def keys(self, memory: Tensor) -> Tensor:
        return memory

    def call(self, query: Tensor, keys: Tensor) -> Tensor:
        if self.scaled:
            query = query * query.shape[-1] ** -0.5
        return ops.matmul(query, ops.transpose(keys, (0, 2, 1)))

    def get_config(self) -> dict:
        return {**super().get_config(), "scaled": self.scaled}


@keras.saving.register_keras_serializable(package="keras_drill")
class GeneralScore(AttentionScore):
    """Attention score, the dot product of a query h and a mapped source vector s: `g h · (s W)`.

    W is a weight matrix, so queries and source may have different widths. The factor g is 1, unless
    `scaled` is set. Pass the score to `keras_drill.layers.Attention`.

    Args:
        scaled: Whether the factor g is a trainable weight, which starts at 1.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), "general"
    """

    def __init__(self, scaled: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.scaled = scaled

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.memory_kernel = self.add_weight(
            shape=(memory_shape[-1], query_shape[-1]), name="memory_kernel"
        )
        if self.scaled:
            self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def keys(self, memory: Tensor) -> Tensor:
        return ops.matmul(memory, ops.cast(self.memory_kernel, memory.dtype))

    def call(self, query: Tensor, keys: Tensor) -> Tensor:
        if self.scaled:
            query = query * ops.cast(self.scale, query.dtype)
        return ops.matmul(query, ops.transpose(keys, (0, 2, 1)))

    def get_config(self) -> dict:
        return {**super().get_config(), "scaled": self.scaled}


@keras.saving.register_keras_serializable(package="keras_drill")
class AdditiveScore(AttentionScore):
    """Attention score, a small network of query h and source vector s: `v · tanh(h W_q + s W_m)`.

    v, W_q and W_m are weights. This score is also known as "MLP" or "concat". With
    `normalized=True` the score is `g v / |v| · tanh(h W_q + s W_m + b)` with the further weights g
    and b, where g starts at `units ** -0.5`. With `num_layers` above 1, each further layer maps the
    output x of the previous layer to `tanh(x W + b)`, with its own W and b. v multiplies the output
    of the last layer. Pass the score to `keras_drill.layers.Attention`.

    This score needs more time and memory than the other scores, because it computes tensors
    `[B, T, S, units]` for B sequences, T queries and S positions of the source.

    Args:
        units: Width of the network's layers.
        normalized: Whether to normalise v to the trainable norm g, and to add the bias b.
        num_layers: Number of layers of the network.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Bahdanau et al., 2015](https://arxiv.org/abs/1409.0473)
        - [Salimans & Kingma, 2016](https://arxiv.org/abs/1602.07868) (normalisation)
    """

    def __init__(self, units: int, normalized: bool = False, num_layers: int = 1, **kwargs: Any):
        super().__init__(**kwargs)
        for name, value in (("units", units), ("num_layers", num_layers)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        self.units = units
        self.normalized = normalized
        self.num_layers = num_layers

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.query_kernel = self.add_weight(
            shape=(query_shape[-1], self.units), name="query_kernel"
        )
        self.memory_kernel = self.add_weight(
            shape=(memory_shape[-1], self.units), name="memory_kernel"
        )
        self.further_layers = [
            (
                self.add_weight(shape=(self.units, self.units), name=f"kernel_{i}"),
                self.add_weight(shape=(self.units,), initializer="zeros", name=f"bias_{i}"),
            )
            for i in range(1, self.num_layers)
        ]
        self.v = self.add_weight(shape=(self.units,), initializer="glorot_uniform", name="v")
        if self.normalized:
            self.g = self.add_weight(
                shape=(), initializer=keras.initializers.Constant(self.units**-0.5), name="g"
            )
            self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def keys(self, memory: Tensor) -> Tensor:
        return ops.matmul(memory, ops.cast(self.memory_kernel, memory.dtype))

    def call(self, query: Tensor, keys: Tensor) -> Tensor:
        def cast(weight):
            return ops.cast(weight, query.dtype)

        query = ops.matmul(query, cast(self.query_kernel))  # [B, T, a]
        v = cast(self.v)
        if self.normalized:
            query = query + cast(self.bias)
            v = cast(self.g) * v * ops.rsqrt(ops.sum(ops.square(v)))
        # Not as a product of many small matrices, which aborts in TensorFlow 2.16 on CPUs.
        x = ops.tanh(query[:, :, None] + keys[:, None])
        for kernel, bias in self.further_layers:
            x = ops.tanh(ops.einsum("btsa,ac->btsc", x, cast(kernel)) + cast(bias))
        return ops.einsum("btsa,a->bts", x, v)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "units": self.units,
            "normalized": self.normalized,
            "num_layers": self.num_layers,
        }


class AttentionWindow(keras.layers.Layer, abc.ABC):
    """Base class for windows, which limit the source positions that a query attends to.

    Pass a window to `keras_drill.layers.Attention`, which calls it. Attention with a window is
    known as "local attention". Subclasses implement `call`, and create weights, if any, in
    `build(query_shape)`.

    Shape letters: B sequences, T queries (positions of the decoder) of width d_q, S positions of
    the source.
    """

    @abc.abstractmethod
    def call(self, query: Tensor, positions: Tensor, lengths: Tensor, num_positions: int) -> tuple:
        """Computes the window of every query.

        Args:
            query: `[B, T, d_q]`.
            positions: Integers, the queries' positions in the target, from 0: `[B, T]`, or `[1, T]`
                if all sequences have the same positions.
            lengths: Integers `[B]`, the numbers of unmasked source positions.
            num_positions: Number of source positions S, with padding.

        Returns:
            Booleans `[B, T, S]`, True for positions inside the window; and float32 factors
            `[B, T, S]`, by which `Attention` multiplies the alignments, or `None` for no factors.
        """


@keras.saving.register_keras_serializable(package="keras_drill")
class MonotonicWindow(AttentionWindow):
    """Attention window around source position t for the query at position t ("local-m").

    The window contains the positions at most `radius` away from t. If the source has no position t,
    the window is around the source's last unmasked position. Pass the window to
    `keras_drill.layers.Attention`.

    Args:
        radius: Largest distance from t, a positive integer.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), section 3.2
    """

    def __init__(self, radius: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.radius = check_radius(radius)

    def call(
        self, query: Tensor, positions: Tensor, lengths: Tensor, num_positions: int
    ) -> tuple[Tensor, Tensor | None]:
        columns = ops.arange(num_positions, dtype="int32")
        last = ops.maximum(ops.cast(lengths, "int32") - 1, 0)[:, None]
        centers = ops.minimum(ops.cast(positions, "int32"), last)[..., None]  # [B, T, 1]
        return ops.abs(columns - centers) <= self.radius, None

    def get_config(self) -> dict:
        return {**super().get_config(), "radius": self.radius}


@keras.saving.register_keras_serializable(package="keras_drill")
class PredictiveWindow(AttentionWindow):
    """Attention window around a source position p that is predicted from the query h ("local-p").

        p = (n - 1) σ(v · tanh(h W))

    σ is the sigmoid, v and W are weights, and n is the number of unmasked source positions. The
    window contains the positions s with `|s - p| <= radius`. Their attention weights are multiplied
    by `exp(-(s - p)² / (2 (radius / 2)²))`, and not normalised again. Positions are
    numbered from 0, so p lies between the first and the last position of the source. Pass the
    window to `keras_drill.layers.Attention`.

    Args:
        radius: Largest distance from p, a positive integer.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), section 3.2
    """

    def __init__(self, radius: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.radius = check_radius(radius)

    def build(self, query_shape: Shape, *other_shapes: Shape) -> None:
        width = query_shape[-1]
        self.kernel = self.add_weight(shape=(width, width), name="kernel")
        self.v = self.add_weight(shape=(width,), initializer="glorot_uniform", name="v")

    def call(
        self, query: Tensor, positions: Tensor, lengths: Tensor, num_positions: int
    ) -> tuple[Tensor, Tensor | None]:
        inner = ops.tanh(ops.matmul(query, ops.cast(self.kernel, query.dtype)))
        share = ops.sigmoid(ops.cast(ops.matmul(inner, ops.cast(self.v, query.dtype)), "float32"))
        last = ops.maximum(ops.cast(lengths, "float32") - 1, 0)[:, None]  # [B, 1]
        distance = ops.arange(num_positions, dtype="float32") - (last * share)[..., None]
        factors = ops.exp(-2 * ops.square(distance / self.radius))
        return ops.abs(distance) <= self.radius, factors

    def get_config(self) -> dict:
        return {**super().get_config(), "radius": self.radius}


def check_radius(radius: int) -> int:
    """Returns `radius`, or raises `ValueError` if it is not a positive integer."""
    if not isinstance(radius, int) or radius < 1:
        raise ValueError(f"`radius` must be a positive integer. Received: radius={radius!r}")
    return radius
