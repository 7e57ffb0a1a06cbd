"""Base class of recurrent language model backbones, for any kind of recurrent layer."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_drill.layers import EmbeddingDropout, VariationalDropout
from keras_drill.layers.inner_layers import deserialize_layers, serialize_layer
from keras_drill.layers.output_feedback import feedback_sequence
from keras_drill.layers.recurrent import Recurrent, check_batch_size
from keras_drill.models.sense_feedback import SenseFeedback, weighs_by_posterior
from keras_drill.models.word_embeddings import word_embedding
from keras_drill.types import Shape, Tensor, Tensors


class RecurrentBackbone(keras.Model):
    """Base class for backbones that map tokens to hidden states by a stack of recurrent layers.

    Subclasses set `layer_class`, and may set `layer_arguments` for arguments of their layers. The
    stack computes time-major, `[T, B, d]`, so a batch is transposed only twice.
    """

    layer_class: type[Recurrent]

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int,
        units: int,
        num_layers: int,
        output_dim: int | None = None,
        dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        input_dropout: float = 0.0,
        embedding_dropout: float = 0.0,
        stateful: bool = False,
        batch_size: int | None = None,
        seed: int | None = None,
        embedding: keras.layers.Embedding | None = None,
        **kwargs: Any,
    ):
        layer_arguments = kwargs.pop("layer_arguments", {})  # of a subclass, not of its users
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

        self.embedding = word_embedding(
            embedding,
            vocabulary_size,
            embedding_dim,
            "embedding",
            partial(keras.initializers.RandomUniform, -0.1, 0.1),
            seed,
            self.dtype_policy,
        )
        self._check_output_dim()
        self.word_dropout = EmbeddingDropout(
            embedding_dropout,
            vocabulary_size,
            seed=self.layer_seed(0),
            dtype=self.dtype_policy,
            name="embedding_dropout",
        )
        rates = [input_dropout] + [hidden_dropout] * (num_layers - 1) + [dropout]
        self.dropouts = [self._time_dropout(i, rate) for i, rate in enumerate(rates)]
        self.recurrent_layers = [
            self.layer_class(size, **self.recurrent_arguments(i), **layer_arguments)
            for i, size in enumerate(self.layer_sizes)
        ]

    def _check_output_dim(self):
        by_posterior = weighs_by_posterior(self.embedding)
        if by_posterior and self.layer_sizes[-1] != self.embedding_dim:
            raise ValueError(
                f"`output_dim` must be None or {self.embedding_dim}, the width of `embedding`, "
                'because `weighting="posterior"` compares its senses with the output. '
                f"Received: output_dim={self.output_dim}"
            )

    def _time_dropout(self, index: int, rate: float) -> VariationalDropout:
        return VariationalDropout(
            rate,
            time_major=True,
            seed=self.layer_seed(1 + index),
            dtype=self.dtype_policy,
            name=f"dropout_{index}",
        )

    @property
    def inputs_shape(self) -> Shape | None:
        """Input shape for which a `LanguageModel` builds the backbone, or `None` if the batch size
        is not known. A subclass with other inputs also returns `None`.
        """
        is_open = self.stateful and self.batch_size is None
        return None if is_open else (self.batch_size, None)

    @property
    def layer_sizes(self) -> list[int]:
        """Units of each layer. The last layer has the size of the output."""
        return [self.units] * (self.num_layers - 1) + [self.output_dim or self.embedding_dim]

    def recurrent_arguments(self, index: int) -> dict:
        """Constructor arguments of the layer at `index` that all layer classes share."""
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
        """A different seed for each random choice, so that their numbers are independent."""
        return None if self.seed is None else 1000 * self.seed + index

    def build(self, input_shape: Shape) -> None:
        batch_size = input_shape[0] if self.batch_size is None else self.batch_size
        if self.stateful and batch_size is None:
            raise ValueError(
                "`stateful=True` needs `batch_size` when the batch axis of the tokens is dynamic. "
                f"Received: batch_size=None, tokens of shape {tuple(input_shape)}"
            )
        self.embedding.build(input_shape)
        size = self.embedding_dim
        for dropout in (self.word_dropout, self.dropouts[0]):
            dropout.build((None, batch_size, size))
        for layer, dropout in zip(self.recurrent_layers, self.dropouts[1:], strict=True):
            layer.build((None, batch_size, size))
            size = layer.units
            dropout.build((None, batch_size, size))

    @property
    def state_variables(self) -> list:
        """Variables of the carried state, in the order of `initial_state`; `[]` if not stateful."""
        return [v for layer in self.recurrent_layers for v in layer.state_variables]

    def initial_state(self, batch_size: int) -> list:
        """Returns zeros, a flat list of tensors `[batch_size, units]` for the states of all layers
        in order.
        """
        return [s for layer in self.recurrent_layers for s in layer.initial_state(batch_size)]

    def reset_state(self) -> None:
        """Sets the carried state to zero."""
        for layer in self.recurrent_layers:
            layer.reset_state()

    def call(
        self,
        tokens: Tensor,
        initial_state: Tensors | None = None,
        return_state: bool = False,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        tokens = ops.transpose(tokens)  # [T, B]
        mask = None if mask is None else ops.transpose(mask)
        run = self._run_steps if weighs_by_posterior(self.embedding) else self._run_layers
        raw, hidden, new_state = run(tokens, initial_state, mask, training)
        if training:
            self.regularize_activations(raw, hidden)
        hidden = ops.transpose(hidden, (1, 0, 2))  # [B, T, d]
        return (hidden, new_state) if return_state else hidden

    def _run_layers(self, tokens, initial_state, mask, training):
        """Runs layer by layer, each for all time steps.

        Returns:
            Outputs `[T, B, d]` of the last layer before and after dropout, and the new state.
        """
        hidden = self.word_dropout(self.embedding(tokens), tokens, training=training)  # [T, B, d]
        hidden = self.dropouts[0](hidden, training=training)
        new_state: list[Tensor] = []
        for layer, dropout in zip(self.recurrent_layers, self.dropouts[1:], strict=True):
            start = None
            if initial_state is not None:
                start = initial_state[len(new_state) : len(new_state) + layer.num_states]
            raw, *state = layer(hidden, initial_state=start, mask=mask, training=training)
            hidden = dropout(raw, training=training)
            new_state += state
        return raw, hidden, new_state

    def _run_steps(self, tokens, initial_state, mask, training):
        """Runs step by step, so that a word's sense can depend on the output of the step before.

        The results are those of `_run_layers`."""
        layers = self.recurrent_layers
        dtype = layers[0].state_dtype
        carries_state = self.stateful and initial_state is None
        if carries_state:
            tokens = check_batch_size(tokens, self.state_variables)
        steps, batch_size = ops.shape(tokens)
        if initial_state is None:
            carried = self.state_variables if self.stateful else None
            initial_state = carried or self.initial_state(batch_size)
        # Every dropout mask is drawn once for all steps.
        sizes = [self.embedding_dim, *self.layer_sizes]
        kept = [
            ops.cast(dropout(ops.ones((1, batch_size, size)), training=training)[0], dtype)
            for dropout, size in zip(self.dropouts, sizes, strict=True)
        ]
        kept_words = self.word_dropout(ops.ones((steps, batch_size, 1)), tokens, training=training)
        sequences = feedback_sequence(
            SenseFeedback(self.embedding, tokens, ops.cast(kept_words, dtype)),
            layers,
            [layer.read_weights(training) for layer in layers],
            kept,
            mask,
            [ops.cast(ops.reshape(s, (-1, s.shape[-1])), dtype) for s in initial_state],
        )
        new_state = [sequence[-1] for sequence in sequences]
        if carries_state:
            start = 0
            for layer in layers:
                layer.carry_state(new_state[start : start + layer.num_states])
                start += layer.num_states
        raw = sequences[-layers[-1].num_states]  # [T, B, d]
        dropped = ops.cast(raw * kept[-1], self.compute_dtype)
        return ops.cast(raw, self.compute_dtype), dropped, new_state

    def regularize_activations(self, raw: Tensor, dropped: Tensor) -> None:
        """Adds losses on the last layer's outputs `[T, B, d]`, before and after dropout."""

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, self.output_dim or self.embedding_dim)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "embedding": serialize_layer(self.embedding),
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

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "RecurrentBackbone":
        return cls(**deserialize_layers(config, "embedding"))
