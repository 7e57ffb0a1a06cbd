"""The part of a recurrent language model backbone that does not depend on its cell."""

import keras
from keras import ops

from keras_drill.layers import EmbeddingDropout, VariationalDropout


class RecurrentBackbone(keras.Model):
    """Abstract backbone: tokens to hidden states through a stack of recurrent layers.

    Subclasses set `recurrent_layers`, of the sizes `layer_sizes` and with the constructor arguments
    `recurrent_arguments`. The stack runs time-major: a batch is transposed twice, whatever the
    number of layers.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int,
        units: int,
        num_layers: int,
        output_dim: int | None,
        dropout: float,
        hidden_dropout: float,
        input_dropout: float,
        embedding_dropout: float,
        stateful: bool,
        batch_size: int | None,
        seed: int | None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1. Received: num_layers={num_layers}")
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.units = units
        self.num_layers = num_layers
        self.output_dim = output_dim
        self.dropout = dropout
        self.hidden_dropout = hidden_dropout
        self.input_dropout = input_dropout
        self.embedding_dropout = embedding_dropout
        self.stateful = stateful
        self.batch_size = batch_size
        self.seed = seed

        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=keras.initializers.RandomUniform(-0.1, 0.1, seed=seed),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.word_dropout = EmbeddingDropout(
            embedding_dropout,
            vocabulary_size,
            seed=self.layer_seed(0),
            dtype=self.dtype_policy,
            name="embedding_dropout",
        )
        rates = [input_dropout] + [hidden_dropout] * (num_layers - 1) + [dropout]
        self.dropouts = [
            VariationalDropout(
                rate,
                time_major=True,
                seed=self.layer_seed(1 + i),
                dtype=self.dtype_policy,
                name=f"dropout_{i}",
            )
            for i, rate in enumerate(rates)
        ]

    @property
    def layer_sizes(self) -> list[int]:
        """Units of each layer: the last has the size of the output."""
        return [self.units] * (self.num_layers - 1) + [self.output_dim or self.embedding_dim]

    def recurrent_arguments(self, index: int) -> dict:
        """Constructor arguments of the layer at `index` that do not depend on its cell."""
        bound = self.layer_sizes[index] ** -0.5
        return {
            "return_sequences": True,
            "return_state": True,
            "stateful": self.stateful,
            "time_major": True,
            "kernel_initializer": keras.initializers.RandomUniform(
                -bound, bound, seed=self.layer_seed(200 + index)
            ),
            "recurrent_initializer": keras.initializers.RandomUniform(
                -bound, bound, seed=self.layer_seed(300 + index)
            ),
            "seed": self.layer_seed(100 + index),
            "dtype": self.dtype_policy,
            "name": f"recurrent_{index}",
        }

    def layer_seed(self, index: int) -> int | None:
        """A seed of its own for each random choice, so that no two draw the same numbers."""
        return None if self.seed is None else 1000 * self.seed + index

    def build(self, input_shape):
        batch_size = input_shape[0] if self.batch_size is None else self.batch_size
        if self.stateful and batch_size is None:
            raise ValueError(
                "`stateful=True` needs `batch_size` when the batch axis of the tokens is dynamic. "
                f"Received: batch_size=None, tokens of shape {tuple(input_shape)}"
            )
        self.embedding.build(input_shape)
        size = self.embedding_dim
        for layer in self.recurrent_layers:
            layer.build((None, batch_size, size))
            size = layer.units

    @property
    def state_variables(self) -> list:
        """Variables of the carried state, in the order of `initial_state`; `[]` if not stateful."""
        return [v for layer in self.recurrent_layers for v in layer.state_variables]

    def initial_state(self, batch_size) -> list:
        """Zeros: a flat list of tensors `[batch_size, units]`, the states of each layer in turn."""
        return [s for layer in self.recurrent_layers for s in layer.initial_state(batch_size)]

    def reset_state(self):
        """Sets the carried state to zero."""
        for layer in self.recurrent_layers:
            layer.reset_state()

    def call(self, tokens, initial_state=None, return_state=False, mask=None, training=False):
        tokens = ops.transpose(tokens)  # [T, B]
        mask = None if mask is None else ops.transpose(mask)
        hidden = self.word_dropout(self.embedding(tokens), tokens, training=training)  # [T, B, d]
        hidden = self.dropouts[0](hidden, training=training)
        new_state = []
        for layer, dropout in zip(self.recurrent_layers, self.dropouts[1:], strict=True):
            start = None
            if initial_state is not None:
                start = initial_state[len(new_state) : len(new_state) + layer.num_states]
            raw, *state = layer(hidden, initial_state=start, mask=mask, training=training)
            hidden = dropout(raw, training=training)
            new_state += state
        if training:
            self.regularize_activations(raw, hidden)
        hidden = ops.transpose(hidden, (1, 0, 2))  # [B, T, d]
        return (hidden, new_state) if return_state else hidden

    def regularize_activations(self, raw, dropped):
        """Adds losses on the last layer's outputs `[T, B, d]`, before and after dropout."""

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.output_dim or self.embedding_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "units": self.units,
            "num_layers": self.num_layers,
            "output_dim": self.output_dim,
            "dropout": self.dropout,
            "hidden_dropout": self.hidden_dropout,
            "input_dropout": self.input_dropout,
            "embedding_dropout": self.embedding_dropout,
            "stateful": self.stateful,
            "batch_size": self.batch_size,
            "seed": self.seed,
        }
