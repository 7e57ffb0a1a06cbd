"""Attention of a recurrent decoder to a source.

Shape letters: B sequences, T positions of the decoder (queries), S positions of the source
(memory).
"""

from typing import Any

import keras
from keras import ops

from keras_drill.layers.attention_scores import GeneralScore
from keras_drill.layers.inner_layers import deserialize_layers, serialize_layer
from keras_drill.types import Shape, Tensor


def masked_softmax(scores, mask):
    """Returns the softmax over the unmasked entries of the last axis.

    Masked entries are 0, and so are all entries of a row without unmasked entries.
    """
    scores = ops.where(mask, scores, ops.full_like(scores, -1e30))  # -inf - -inf would be NaN
    highest = ops.max(scores, axis=-1, keepdims=True, initial=-1e30)  # there may be no scores
    shares = ops.exp(scores - highest)
    shares = ops.where(mask, shares, ops.zeros_like(shares))
    return ops.divide_no_nan(shares, ops.sum(shares, axis=-1, keepdims=True))


def by_source(rows, num_sources):
    """Groups rows by their source.

    Args:
        rows: `[R, ...]`, the rows of one source next to each other.
        num_sources: Number of sources B.

    Returns:
        `[B, R / B, ...]`, or `[0, 1, ...]` if there are no sources.
    """
    num_rows = ops.shape(rows)[0]
    if isinstance(num_sources, int) and isinstance(num_rows, int):
        per_source = max(num_rows // max(num_sources, 1), 1)
    else:
        per_source = ops.maximum(num_rows // ops.maximum(num_sources, 1), 1)
    return ops.reshape(rows, (num_sources, per_source, *rows.shape[1:]))


@keras.saving.register_keras_serializable(package="keras_drill")
class Attention(keras.layers.Layer):
    """Attention of a recurrent decoder: each query gets a weighted mean of the source's vectors.

    The weights (alignments) of this mean (context) are a softmax of scores, which measure how well
    a query h_t and the vector m_s of a source position match:

        alignments = softmax_s(score(h_t, m_s)),    context_t = Σ_s alignments_ts m_s

    Shape letters: B sequences, T queries (positions of the decoder) of width d_q, S positions of
    the source (memory) of width d_m.

    Call `build(query_shape, memory_shape)` and `project` before you call the layer.

    Call arguments:
        query: `[B, T, d_q]`.
        source: Output of `project`.
        positions: Integers `[B, T]`, the queries' positions in the target, which only a `window`
            uses; `None` is 0, ..., T - 1.

    Returns:
        Contexts `[B, T, d_m]` in the compute dtype, and alignments `[B, T, S]` in float32.

    Args:
        score: An `AttentionScore`; `None` is `GeneralScore()`.
        window: An `AttentionWindow`, which limits attention to some positions of the source and may
            multiply their alignments by factors; `None` for attention to the whole source.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> attention = keras_drill.layers.Attention(keras_drill.layers.AdditiveScore(7))
    >>> attention.build((None, None, 5), (None, None, 3))
    >>> source = attention.project(keras.ops.ones((2, 4, 3)))
    >>> contexts, alignments = attention(keras.ops.ones((2, 6, 5)), source)
    >>> tuple(contexts.shape), tuple(alignments.shape)
    ((2, 6, 3), (2, 6, 4))
    """

    def __init__(self, score: Any = None, window: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.score = GeneralScore(dtype=self.dtype_policy) if score is None else score
        self.window = window

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.score.build(query_shape, memory_shape)
        if self.window is not None:
            self.window.build(query_shape)
        self.built = True

    def project(self, memory: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """Prepares a source: computes the tensors that are the same for all queries.

        Args:
            memory: The source, `[B, S, d_m]`.
            mask: `None` or bool `[B, S]`, False for positions to ignore. If all positions of a
                source are ignored, its contexts are 0.

        Returns:
            Dictionary of tensors with first dimension B, the argument `source` of the call.
        """
        memory = ops.cast(memory, self.compute_dtype)
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], "bool")
        return {"memory": memory, "keys": self.score.keys(memory), "mask": mask}

    def call(
        self, query: Tensor, source: dict[str, Tensor], positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        memory, mask = source["memory"], source["mask"][:, None]  # [B, S, d_m], [B, 1, S]
        query = ops.cast(query, self.compute_dtype)
        scores = ops.cast(self.score(query, source["keys"]), "float32")  # [B, T, S]
        factors = None
        if self.window is not None:
            if positions is None:
                positions = ops.arange(ops.shape(query)[1], dtype="int32")[None]
            lengths = ops.sum(ops.cast(source["mask"], "int32"), axis=-1)
            seen, factors = self.window(
                query, positions, lengths, num_positions=ops.shape(memory)[1]
            )
            mask = ops.logical_and(mask, seen)
        alignments = masked_softmax(scores, mask)
        if factors is not None:
            alignments = alignments * factors
        return ops.matmul(ops.cast(alignments, memory.dtype), memory), alignments

    def compute_output_spec(
        self, query: Tensor, source: dict[str, Tensor], positions: Tensor | None = None
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        batch_and_time = tuple(query.shape[:2])
        memory = source["memory"]
        return (
            keras.KerasTensor((*batch_and_time, memory.shape[-1]), self.compute_dtype),
            keras.KerasTensor((*batch_and_time, memory.shape[1]), "float32"),
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "score": serialize_layer(self.score),
            "window": serialize_layer(self.window),
        }

    @classmethod
    def from_config(cls, config: dict) -> "Attention":
        return cls(**deserialize_layers(config, "score", "window"))


@keras.saving.register_keras_serializable(package="keras_drill")
class MultiHeadSourceAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention with the interface of `Attention`.

    The layer has the weights of a `keras.layers.MultiHeadAttention`. Unlike that layer, it projects
    the source once for many calls, in the method `project`. Contexts have the queries' width. The
    returned alignments are the mean over the heads.

        alignments^n = softmax_s(W_q^n h_t · W_k^n m_s / √H),    n = 1..N
        context_t = W_o [c_t^1; ...; c_t^N],    c_t^n = Σ_s alignments_ts^n W_v^n m_s

    h_t is a query, m_s is the vector of a source position, the matrices W are weights, and [...] is
    a concatenation. Every projection also has a bias.

    With `shared_value=True` all heads have the same value projection, and the layer has no output
    projection. Contexts are N·H wide:

        context_t = [c_t^1; ...; c_t^N],    c_t^n = Σ_s alignments_ts^n W_v m_s

    Use this option in a decoder that multiplies the context by its own matrix, which makes W_o
    superfluous.

    The call arguments and results are those of `Attention`; `positions` is ignored.

    Args:
        num_heads: Number of heads N.
        key_dim: Width H of a head.
        shared_value: Whether all heads share one value projection, without an output projection.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> attention = keras_drill.layers.MultiHeadSourceAttention(num_heads=2, key_dim=3)
    >>> attention.build((None, None, 5), (None, None, 7))
    >>> source = attention.project(keras.ops.ones((2, 4, 7)))
    >>> contexts, alignments = attention(keras.ops.ones((2, 6, 5)), source)
    >>> tuple(contexts.shape), tuple(alignments.shape)
    ((2, 6, 5), (2, 6, 4))

    References:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)
    """

    def __init__(self, num_heads: int, key_dim: int, shared_value: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.shared_value = shared_value
        make_heads = _SharedValueHeads if shared_value else keras.layers.MultiHeadAttention
        self.heads = make_heads(num_heads, key_dim, dtype=self.dtype_policy, name="heads")

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.heads.build(query_shape, memory_shape)
        self.built = True

    def project(self, memory: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """Prepares a source: projects it to the keys and values of all heads.

        The arguments are those of `Attention.project`. The result, a dictionary of tensors, is the
        argument `source` of the call.
        """
        memory = ops.cast(ops.add(memory, 0), self.compute_dtype)  # a tensor without a Keras mask
        if mask is None:
            mask = ops.ones(ops.shape(memory)[:2], "bool")
        heads = self.heads
        return {"values": heads.value_dense(memory), "keys": heads.key_dense(memory), "mask": mask}

    def call(
        self, query: Tensor, source: dict[str, Tensor], positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        query = self.heads.query_dense(ops.cast(query, self.compute_dtype))  # [B, T, N, H]
        scores = ops.einsum("btnh,bsnh->bnts", query * self.key_dim**-0.5, source["keys"])
        alignments = masked_softmax(ops.cast(scores, "float32"), source["mask"][:, None, None])
        values = source["values"]  # [B, S, N, H], or [B, S, H]
        equation = "bnts,bsh->btnh" if self.shared_value else "bnts,bsnh->btnh"
        contexts = ops.einsum(equation, ops.cast(alignments, values.dtype), values)
        return self.heads.output_dense(contexts), ops.mean(alignments, axis=1)

    def compute_output_spec(
        self, query: Tensor, source: dict[str, Tensor], positions: Tensor | None = None
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        width = self.num_heads * self.key_dim if self.shared_value else query.shape[-1]
        return (
            keras.KerasTensor((*query.shape[:2], width), self.compute_dtype),
            keras.KerasTensor((*query.shape[:2], source["keys"].shape[1]), "float32"),
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "shared_value": self.shared_value,
        }


class _SharedValueHeads(keras.layers.Layer):
    """Projections for heads that share their values, with `MultiHeadAttention`'s attribute names.

    Args:
        num_heads: Number of heads N.
        key_dim: Width H of a head.
        **kwargs: Keyword arguments of `keras.layers.Layer`.
    """

    def __init__(self, num_heads: int, key_dim: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.query_dense, self.key_dense = (
            keras.layers.EinsumDense(
                "btd,dnh->btnh",
                (None, num_heads, key_dim),
                bias_axes="nh",
                dtype=self.dtype_policy,
                name=name,
            )
            for name in ("query", "key")
        )
        self.value_dense = keras.layers.Dense(key_dim, dtype=self.dtype_policy, name="value")
        self.output_dense = keras.layers.Reshape((-1, num_heads * key_dim), name="concatenation")

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        self.query_dense.build((None, None, query_shape[-1]))
        for layer in (self.key_dense, self.value_dense):
            layer.build((None, None, memory_shape[-1]))
        self.built = True
