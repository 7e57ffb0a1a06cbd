from typing import Any

import keras
from keras import ops

from keras_drill.compositions.composition import Composition
from keras_drill.layers.variational_dropout import VariationalDropout
from keras_drill.ops.saturated import saturated
from keras_drill.types import Initializer, Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class Mixture(Composition):
    """Mixture of softmaxes: K softmaxes over the same labels (output embeddings).

        p(y) = sum_k π_k softmax(scores of c_k)_y,    k = 1..K
        c_k = tanh(h W_k + b_k),    π = softmax(h P)

    h is the hidden state, and c_k is one of K vectors (contexts) that are compared with the labels;
    W_k, b_k and P are weights. With `gated=True`, `c_k = h + g_k * tanh(h W_k + b_k)` with further
    weights g_k (gates). The gates are 0 at first, so a mixture that is added to a trained model
    begins with the model's probabilities.

    Pass the mixture to `keras_drill.OutputLayer` as `composition`, or use
    `keras_drill.MixtureOfSoftmaxes`.

    Args:
        num_mixtures: Number of softmaxes K.
        context_dim: Width of the contexts c_k; `None` is the embeddings' width.
        context_dropout: Dropout rate on the contexts. All time steps (the second axis of hidden
            states with three axes) have the same mask.
        gated: Whether contexts are hidden states plus a gated part, which is 0 at first. Contexts
            must then be as wide as the hidden states.
        kernel_initializer: Initializer of W_k and P.
        seed: Seed of the dropout masks.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Yang et al., 2018](https://arxiv.org/abs/1711.03953)
    """

    def __init__(
        self,
        num_mixtures: int,
        context_dim: int | None = None,
        context_dropout: float = 0.0,
        gated: bool = False,
        kernel_initializer: Initializer = "glorot_uniform",
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, value in {"num_mixtures": num_mixtures, "context_dim": context_dim}.items():
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        if not 0 <= context_dropout < 1:
            raise ValueError(
                "`context_dropout` must be in [0, 1). "
                f"Received: context_dropout={context_dropout!r}"
            )
        self.num_mixtures = num_mixtures
        self.context_dim = context_dim
        self.context_dropout = context_dropout
        self.gated = gated
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.dropout = VariationalDropout(context_dropout, seed=seed, dtype=self.dtype_policy)

    @property
    def num_contexts(self) -> int:
        return self.num_mixtures

    def build(self, hidden_shape: Shape, embeddings_shape: tuple[int, int]) -> None:
        self.width = self.context_dim or embeddings_shape[-1]
        if self.gated and self.width != hidden_shape[-1]:
            raise ValueError(
                f"`context_dim` must be {hidden_shape[-1]}, the width of the hidden states, "
                "because `gated=True` adds the contexts to the hidden states. "
                f"Received: context_dim={self.context_dim}, contexts of width {self.width}"
            )
        self.prior_kernel = self.add_weight(
            shape=(hidden_shape[-1], self.num_mixtures),
            initializer=self.kernel_initializer,
            name="prior_kernel",
        )
        self.latent_kernel = self.add_weight(
            shape=(hidden_shape[-1], self.num_mixtures * self.width),
            initializer=self.kernel_initializer,
            name="latent_kernel",
        )
        self.latent_bias = self.add_weight(
            shape=(self.num_mixtures * self.width,), initializer="zeros", name="latent_bias"
        )
        if self.gated:
            self.gates = self.add_weight(
                shape=(self.num_mixtures, self.width), initializer="zeros", name="gates"
            )
        self.dropout.build((None, None, self.num_mixtures * self.width))
        self.built = True

    def context_shape(self, hidden_shape: Shape) -> Shape:
        return (None, self.width)

    def contexts(self, hidden: Tensor, training: bool | None = None) -> tuple[Tensor, Tensor]:
        dtype = self.compute_dtype
        hidden = ops.cast(hidden, dtype)
        prior_kernel, latent_kernel, latent_bias = (
            ops.cast(w, dtype) for w in (self.prior_kernel, self.latent_kernel, self.latent_bias)
        )
        contexts = ops.tanh(ops.matmul(hidden, latent_kernel) + latent_bias)  # [..., K d]
        if len(contexts.shape) == 2:  # no time axis
            contexts = contexts[:, None]
        contexts = self.dropout(contexts, training=training)
        contexts = ops.reshape(contexts, (-1, self.num_mixtures, self.width))
        if self.gated:
            contexts = ops.cast(self.gates, dtype) * contexts
            contexts = ops.reshape(hidden, (-1, 1, self.width)) + contexts
        priors = ops.reshape(ops.matmul(hidden, prior_kernel), (-1, self.num_mixtures))
        return contexts, ops.log_softmax(
            saturated(priors, "float64" if dtype == "float64" else "float32")
        )

    def columns(self, targets: Tensor) -> tuple[Tensor, None]:
        return targets[:, None], None

    def log_probs(self, scores: Tensor, log_priors: Tensor) -> Tensor:
        return ops.logsumexp(ops.log_softmax(scores) + log_priors[..., None], axis=1)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "num_mixtures": self.num_mixtures,
            "context_dim": self.context_dim,
            "context_dropout": self.context_dropout,
            "gated": self.gated,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }
