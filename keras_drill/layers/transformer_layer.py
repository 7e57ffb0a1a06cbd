"""One layer of a Transformer, for whole sequences or one position at a time.

Shape letters: B sequences, T positions of the sequence, S positions of the source, L positions of a
cache, d width, N heads, H width of a head.
"""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_drill.layers.attention import by_source, masked_softmax
from keras_drill.layers.dropout import Dropout, separate_replicas
from keras_drill.ops.private_interfaces import attention_dropout
from keras_drill.types import Activation, Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class TransformerLayer(keras.layers.Layer):
    """A Transformer layer: self-attention, optional attention to a source, feed-forward network.

        x = x + D(SelfAttention(n(x)))
        x = x + D(SourceAttention(n(x), source))          with `attends_source`
        x = x + D(W_2 D_a(σ(W_1 n(x) + b_1)) + b_2)

    D and D_a are dropout, σ is the activation, and W_1, W_2, b_1 and b_2 are weights. With
    `norm_first` ("pre-norm"), n is a layer normalisation. Otherwise n is the identity, and a layer
    normalisation follows each sum ("post-norm", as in Vaswani et al.). Attention is
    `keras.layers.MultiHeadAttention`, which uses flash attention if Keras' flash attention is
    enabled.

    Shape letters: B sequences, T positions, S positions of the source, d features, N heads of width
    H = d / N.

    Call arguments:
        x: `[B, T, d]`.
        source: `[B, S, d]`, with `attends_source`.
        mask: `None` or bool `[B, T]`, False for positions of `x` to ignore.
        source_mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
        training: whether dropout is on.

    Output shape: `[B, T, d]`.

    Args:
        num_heads: Number of heads N, a divisor of d.
        feed_forward_dim: Width of the feed-forward network's inner layer.
        causal: Whether a position attends only to itself and to earlier positions.
        attends_source: Whether the layer also attends to a source.
        dropout: Rate of the dropout D on each sublayer's output.
        attention_dropout: Dropout rate on attention weights. With a rate above 0, Keras does not
            use fused attention (such as flash attention) in training.
        activation_dropout: Rate of the dropout D_a on the feed-forward network's inner layer.
        activation: Activation σ of the feed-forward network.
        norm_first: Whether to normalise before each sublayer (`True`) or after each sum (`False`).
        layer_norm_epsilon: ε of the layer normalisations.
        seed: Integer for all dropout masks, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = keras_drill.layers.TransformerLayer(num_heads=2, feed_forward_dim=11, causal=True)
    >>> tuple(layer(keras.ops.ones((3, 5, 6))).shape)
    (3, 5, 6)

    References:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)
        - [Xiong et al., 2020](https://arxiv.org/abs/2002.04745) (where to normalise)
    """

    def __init__(
        self,
        num_heads: int,
        feed_forward_dim: int,
        causal: bool = False,
        attends_source: bool = False,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        norm_first: bool = False,
        layer_norm_epsilon: float = 1e-6,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, value in {"num_heads": num_heads, "feed_forward_dim": feed_forward_dim}.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        self.num_heads = num_heads
        self.feed_forward_dim = feed_forward_dim
        self.causal = causal
        self.attends_source = attends_source
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.activation = keras.activations.get(activation)
        self.norm_first = norm_first
        self.layer_norm_epsilon = layer_norm_epsilon
        self.seed = seed
        self.supports_masking = True

    def build(self, x_shape: Shape, source_shape: Shape | None = None) -> None:
        width = x_shape[-1]
        if width is None or width % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the width of the layer's input. Received: "
                f"num_heads={self.num_heads}, input of shape {tuple(x_shape)}"
            )
        seeds = iter(range(5))

        def seed():
            return None if self.seed is None else 10 * self.seed + next(seeds)

        def attention(name):
            layer = keras.layers.MultiHeadAttention(
                self.num_heads,
                width // self.num_heads,
                dropout=self.attention_dropout,
                seed=seed(),
                dtype=self.dtype_policy,
                name=name,
            )
            sequence = (None, None, width)
            layer.build(sequence, sequence, sequence)
            separate_replicas(attention_dropout(layer))
            return layer

        def norm(name):
            layer = keras.layers.LayerNormalization(
                epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
            )
            layer.build((None, None, width))
            return layer

        def dense(units, inputs, name, activation=None):
            layer = keras.layers.Dense(units, activation, dtype=self.dtype_policy, name=name)
            layer.build((None, None, inputs))
            return layer

        def dropout(rate, name):
            return Dropout(rate, seed=seed(), dtype=self.dtype_policy, name=name)

        self.self_attention = attention("self_attention")
        self.self_attention_norm = norm("self_attention_norm")
        if self.attends_source:
            self.source_attention = attention("source_attention")
            self.source_attention_norm = norm("source_attention_norm")
        self.inner = dense(self.feed_forward_dim, width, "inner", self.activation)
        self.outer = dense(width, self.feed_forward_dim, "outer")
        self.feed_forward_norm = norm("feed_forward_norm")
        self.inner_dropout = dropout(self.activation_dropout, "inner_dropout")
        self.residual_dropout = dropout(self.dropout, "residual_dropout")

    def call(
        self,
        x: Tensor,
        source: Tensor | None = None,
        mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        def attend_to_itself(x):
            return self.self_attention(
                x,
                x,
                attention_mask=None if mask is None else mask[:, None, :],
                use_causal_mask=self.causal,
                training=training,
            )

        def attend_to_source(x):
            return self.source_attention(
                x,
                source,
                attention_mask=None if source_mask is None else source_mask[:, None, :],
                training=training,
            )

        return self._run(x, attend_to_itself, attend_to_source, training)

    def project_source(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the keys and the values of a source `[B, S, d]`, a pair of `[B, S, N, H]`.

        Call this method once for a source, and pass the pair to every call of `step`.
        """
        attention = self.source_attention
        return attention.key_dense(source), attention.value_dense(source)

    def empty_cache(self, batch_size: int, length: int) -> tuple[Tensor, Tensor]:
        """Returns an empty cache for `step`: a pair of zeros `[R, L, N, H]`, for keys and values.

        R is `batch_size`, the number of rows (sequences). L is `length`, the largest number of
        positions that will be read.
        """
        width = self.outer.kernel.shape[-1]
        shape = (batch_size, length, self.num_heads, width // self.num_heads)
        return ops.zeros(shape, self.compute_dtype), ops.zeros(shape, self.compute_dtype)

    def step(
        self,
        x: Tensor,
        cache: tuple[Tensor, Tensor],
        position: Tensor,
        source: tuple[Tensor, Tensor] | None = None,
        source_mask: Tensor | None = None,
        return_attention: bool = False,
    ) -> tuple:
        """Reads one more position of R rows (sequences), for inference with `causal=True`.

        The rows of each of the B sources are adjacent, for example the beams of a beam search. All
        sources have the same number of rows, R / B.

        Args:
            x: `[R, 1, d]`.
            cache: Keys and values `[R, L, N, H]` of at most L positions, the `length` passed to
                `empty_cache`: the output of `empty_cache`, or of the previous step.
            position: Integers `[R]`, the position of `x` in each row, from 0.
            source: Output of `project_source` for the B sources, if the layer attends to a source;
                else `None`.
            source_mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
            return_attention: Whether to return the attention to the source.

        Returns:
            The output `[R, 1, d]` and the cache with this position. With `return_attention=True`
            also the attention weights of the source's positions, `[R, S]` in float32, the mean over
            the heads.
        """
        new_cache = cache
        weights: list[Tensor] = []
        columns = ops.arange(cache[0].shape[1] or ops.shape(cache[0])[1])[None, :]  # [1, L]
        is_here = ops.equal(columns, position[:, None])[:, :, None, None]  # [R, L, 1, 1]
        read = ops.less_equal(columns, position[:, None])[:, None, None, :]  # [R, 1, 1, L]

        def attend_to_itself(x):
            nonlocal new_cache
            attention, (keys, values) = self.self_attention, cache
            # Written by `where`, which is a standard operation on every backend.
            new_cache = (
                ops.where(is_here, attention.key_dense(x), keys),  # key_dense: [R, 1, N, H]
                ops.where(is_here, attention.value_dense(x), values),
            )
            return _attend(attention, x, *new_cache, read)

        attend_to_source = None
        if source is not None:
            wanted = weights if return_attention else None
            attend_to_source = partial(self._read_source, *source, source_mask, wanted)
        x = self._run(x, attend_to_itself, attend_to_source, training=False)
        return x, new_cache, *weights

    def _read_source(self, keys, values, source_mask, weights, x):
        """Computes the attention of `x` `[R, 1, d]` to the source.

        Args:
            keys, values: Output of `project_source`.
            source_mask: `None` or bool `[B, S]`.
            weights: A list to which the attention weights are appended, or `None`.
            x: `[R, 1, d]`.

        Returns:
            `[R, 1, d]`.
        """
        mask = None if source_mask is None else source_mask[:, None, None, :]
        # The rows of a source are treated as positions, so that keys and values are not copied.
        rows = by_source(x[:, 0], ops.shape(keys)[0])  # [B, R / B, d]
        if weights is not None:
            of_rows = _weigh(self.source_attention, rows, keys, mask)  # [B, R / B, S]
            weights.append(ops.reshape(of_rows, (ops.shape(x)[0], ops.shape(keys)[1])))
        attended = _attend(self.source_attention, rows, keys, values, mask)
        return ops.reshape(attended, ops.shape(x))

    def _run(self, x, attend_to_itself, attend_to_source, training):
        """Runs the sublayers with residual sums and normalisations.

        Args:
            x: `[..., d]`.
            attend_to_itself, attend_to_source: Functions that compute the two attentions of an
                input `[..., d]`.
            training: Whether dropout is on.
        """

        def feed_forward(x):
            return self.outer(self.inner_dropout(self.inner(x), training=training))

        sublayers = [(attend_to_itself, self.self_attention_norm)]
        if self.attends_source:
            sublayers.append((attend_to_source, self.source_attention_norm))
        for sublayer, norm in [*sublayers, (feed_forward, self.feed_forward_norm)]:
            update = sublayer(norm(x) if self.norm_first else x)
            x = x + self.residual_dropout(update, training=training)
            x = x if self.norm_first else norm(x)
        return x

    def compute_output_shape(self, x_shape: Shape, source_shape: Shape | None = None) -> Shape:
        return x_shape

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "feed_forward_dim": self.feed_forward_dim,
            "causal": self.causal,
            "attends_source": self.attends_source,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "activation": keras.activations.serialize(self.activation),
            "norm_first": self.norm_first,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "seed": self.seed,
        }


def _attend(attention, x, keys, values, mask):
    """Returns the output of the layer `attention` for `x` `[B, T, d]` and given keys and values."""
    query = attention.query_dense(x)  # [B, T, N, H]
    # A caller may keep the cache in another dtype than the layer's.
    keys, values = (ops.cast(y, query.dtype) for y in (keys, values))
    return attention.output_dense(ops.dot_product_attention(query, keys, values, mask=mask))


def _weigh(attention, x, keys, mask):
    """Returns the attention weights of `x` `[B, T, d]`, the mean over the heads, `[B, T, S]`."""
    query = ops.cast(attention.query_dense(x), "float32")  # [B, T, N, H]
    scores = ops.einsum("btnh,bsnh->bnts", query, ops.cast(keys, "float32"))
    scores = scores / query.shape[-1] ** 0.5
    mask = ops.ones_like(scores, "bool") if mask is None else mask
    return ops.mean(masked_softmax(scores, mask), axis=1)
