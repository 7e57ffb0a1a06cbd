"""The decoder of a recurrent encoder–decoder.

Shapes: B sources, R rows (several for each source in a beam search), T positions of the target, S
positions of the source.
"""

from typing import Any

import keras
from keras import ops

from keras_drill.layers import VariationalDropout
from keras_drill.layers.attention_feedback import AttentionFeedback
from keras_drill.layers.attentional_state import AttentionalState
from keras_drill.layers.output_feedback import OutputFeedback, feedback_sequence
from keras_drill.layers.recurrent import Recurrent
from keras_drill.models.sense_feedback import (
    AttentiveSenseFeedback,
    SenseFeedback,
    weighs_by_posterior,
)
from keras_drill.types import Shape, Tensor


class RecurrentDecoder(keras.layers.Layer):
    """Decoder that maps a target and an encoded source to hidden states.

        h_t = layers(D(E[target_t]), h_{t-1}),    hidden_t = D(tanh(W [context_t; h_t]))

    E is the embedding, D a dropout, and context_t the attention's weighted mean of the encoded
    source. With input feeding, the layers read `[D(E[target_t]); hidden_{t-1}]`. A `SenseEmbedding`
    with the weighting "posterior" weighs senses by their posterior given `hidden_{t-1}`.

    Call arguments:
        target: `[B, T]` int.
        memory: `[B, S, m]`, the encoder's outputs.
        states: The last states of each layer of the encoder.
        source_mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
        training: Whether dropout is on.
        own_words: `None`, or the `OwnWords` of a training step with scheduled sampling.

    Output shape: `[B, T, d]`.

    Args:
        embedding: Embedding of the target's words.
        layers: `keras_drill.layers.LSTM`s or `GRU`s, time-major, that return sequences and states.
        bridges: Layers from the encoder's states to the initial states, one for each state of each
            layer in order. With an empty list, the states are used directly.
        attentional_state: An `AttentionalState`.
        input_feeding: Whether the hidden state is fed back.
        dropout: Rate of D, whose masks are shared by all time steps.
        seed: Integer for the dropouts, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        embedding: keras.layers.Layer,
        layers: list[Recurrent],
        bridges: list[keras.layers.Layer],
        attentional_state: AttentionalState,
        input_feeding: bool = False,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.embedding = embedding
        self.recurrent_layers = layers
        self.bridges = bridges
        self.attentional_state = attentional_state
        self.input_feeding = input_feeding
        self.supports_masking = True
        self.dropouts = [
            VariationalDropout(
                dropout,
                time_major=True,
                seed=None if seed is None else seed + i,
                dtype=self.dtype_policy,
                name=f"dropout_{i}",
            )
            for i in range(len(layers) + 2)
        ]

    @property
    def hidden_size(self) -> int:
        """Width d of the hidden states."""
        return self.attentional_state.dense.units

    def build(self, target_shape: Shape, memory_sizes: list[int]) -> None:
        """Builds the decoder for an encoder with layers of the given sizes."""
        if not self.embedding.built:
            self.embedding.build(target_shape)
        size = self.embedding.output_dim + (self.hidden_size if self.input_feeding else 0)
        for i, layer in enumerate(self.recurrent_layers):
            layer.build((None, None, size))
            size = layer.units
            for bridge in self._bridges_of(i):
                bridge.build((None, memory_sizes[min(i, len(memory_sizes) - 1)]))
        self.attentional_state.build((None, None, size), (None, None, memory_sizes[-1]))
        for dropout, size in zip(self.dropouts, self._dropped_sizes, strict=True):
            dropout.build((1, None, size))
        self.built = True

    @property
    def _dropped_sizes(self):
        """Widths of the tensors with dropout: words, each layer's outputs, and hidden states."""
        units = [layer.units for layer in self.recurrent_layers]
        return [self.embedding.output_dim, *units, self.hidden_size]

    def _bridges_of(self, index):
        count = self.recurrent_layers[index].num_states
        return self.bridges[index * count : (index + 1) * count]

    def initial_state(self, states: list[list[Tensor]]) -> list[list[Tensor]]:
        """Returns each layer's states before the first word, from the states of the encoder's
        layers.
        """
        started = []
        for i, layer in enumerate(self.recurrent_layers):
            of_layer = states[min(i, len(states) - 1)]
            if self.bridges:
                of_layer = [b(s) for b, s in zip(self._bridges_of(i), of_layer, strict=True)]
            started.append([ops.cast(state, layer.state_dtype) for state in of_layer])
        return started

    def call(
        self,
        target: Tensor,
        memory: Tensor,
        states: list[list[Tensor]],
        source_mask: Tensor | None = None,
        training: bool = False,
        own_words: Any = None,
    ) -> Any:
        source = self.attentional_state.project(memory, source_mask)
        kept = self._draw_masks(ops.shape(target)[0], training)
        if own_words is not None:
            target = own_words.sample_sequentially(
                target,
                lambda words, cache: self.step(words, source, cache, kept)[:2],
                self.empty_cache(states),
            )
        fed_back = self.input_feeding or weighs_by_posterior(self.embedding)
        run = self._run_fed_back if fed_back else self._run_layers
        return run(ops.transpose(target), source, self.initial_state(states), kept, training)

    def _draw_masks(self, batch_size, training):
        """Draws dropout factors `[B, size]` for words, each layer's outputs, and hidden states.

        Every mask is drawn once for all steps.
        """
        return [
            ops.cast(
                dropout(ops.ones((1, batch_size, size)), training=training)[0],
                self.recurrent_layers[0].state_dtype,
            )
            for dropout, size in zip(self.dropouts, self._dropped_sizes, strict=True)
        ]

    def _run_layers(self, target, source, states, kept, training):
        """Runs layer by layer, then attention, each for all time steps."""
        kept = [ops.cast(mask, self.compute_dtype) for mask in kept]
        # An embedding in int8 gives float32, whatever the policy.
        x = ops.cast(self.embedding(target), self.compute_dtype) * kept[0]  # [T, B, d]
        for layer, mask, state in zip(self.recurrent_layers, kept[1:-1], states, strict=True):
            x, *_ = layer(x, initial_state=state, training=training)
            x = x * mask
        return self.attentional_state(ops.transpose(x, (1, 0, 2)), source) * kept[-1][:, None]

    def _run_fed_back(self, target, source, states, kept, training):
        """Runs step by step, then computes attention again for all time steps at once."""
        layers = self.recurrent_layers
        num_steps, batch_size = ops.shape(target)
        attention = AttentionFeedback(self.attentional_state, source, num_steps, batch_size)
        feedback: OutputFeedback = attention
        known = None
        if weighs_by_posterior(self.embedding):
            ones = ops.ones((num_steps, batch_size, 1), layers[0].state_dtype)
            senses = SenseFeedback(self.embedding, target, ones)
            feedback = AttentiveSenseFeedback(senses, attention, kept[-1], self.input_feeding)
        else:
            known = self.embedding(target)  # [T, B, d]
        kept_inputs = [kept[0], kept[-1]] if self.input_feeding else [kept[0]]
        sequences = feedback_sequence(
            feedback,
            layers,
            [layer.read_weights(training) for layer in layers],
            [ops.concatenate(kept_inputs, axis=-1), *kept[1:-1]],
            mask=None,
            state=keras.tree.flatten(states),
            known=known,
        )
        outputs = ops.cast(sequences[-layers[-1].num_states] * kept[-2], self.compute_dtype)
        hidden = self.attentional_state(ops.transpose(outputs, (1, 0, 2)), source)
        return hidden * ops.cast(kept[-1][:, None], hidden.dtype)

    def empty_cache(self, states: list[list[Tensor]]) -> tuple:
        """Returns the state of `step` before the first word, from the states of the encoder."""
        states = self.initial_state(states)
        batch_size = ops.shape(states[0][0])[0]
        fed = ops.zeros((batch_size, self.hidden_size), self.compute_dtype)
        return states, fed, ops.zeros((batch_size,), "int32")

    def step(
        self, tokens: Tensor, source: dict, cache: tuple, kept: list | None = None
    ) -> tuple[Any, tuple, Any]:
        """Reads one more word of each of R rows. Each of B sources has R / B rows.

        Args:
            tokens: Integers `[R]`.
            source: Output of the attentional state's `project`.
            cache: Each layer's states, the hidden states that are fed back, and the number of words
                that each row has read.
            kept: `None`, or dropout factors `[R, size]` for words, each layer's outputs, and hidden
                states.

        Returns:
            Hidden states `[R, d]`, the new cache, and each row's attention, `[R, S]`, or `None`.
        """
        kept = kept or [1.0] * (len(self.recurrent_layers) + 2)

        def drop(x, index):
            return x * ops.cast(kept[index], x.dtype)

        states, fed, position = cache
        of_state = {"context": fed} if weighs_by_posterior(self.embedding) else {}
        x, new_states = drop(self.embedding(tokens, **of_state), 0), []
        x = ops.cast(x, self.compute_dtype)
        x = ops.concatenate([x, fed], axis=-1) if self.input_feeding else x
        for i, (layer, state) in enumerate(zip(self.recurrent_layers, states, strict=True)):
            kernel, recurrent_kernel, bias = layer.read_weights(training=False)
            state, _ = layer.run_step(ops.matmul(x, kernel), recurrent_kernel, bias, state)
            new_states.append(state)
            x = drop(ops.cast(state[0], self.compute_dtype), i + 1)
        hidden, alignments = self.attentional_state.step(x, source, position)
        hidden = drop(hidden, -1)
        return hidden, (new_states, hidden, position + 1), alignments
