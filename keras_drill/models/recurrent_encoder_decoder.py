"""Recurrent encoder–decoders, with and without attention."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_drill.layers.attentional_state import AttentionalState
from keras_drill.layers.inner_layers import deserialize_layers, serialize_layer
from keras_drill.models.backbone_inputs import PAIRS_SHAPE
from keras_drill.models.quantizable_backbone import QuantizableBackbone
from keras_drill.models.recurrent_decoder import RecurrentDecoder
from keras_drill.models.recurrent_encoder import RecurrentEncoder
from keras_drill.models.recurrent_layers import CELLS, make_layers
from keras_drill.models.word_embeddings import word_embedding
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class RecurrentEncoderDecoder(QuantizableBackbone):
    """Recurrent encoder–decoder without output layer: maps source and target to hidden states.

        memory, s = encoder(source)
        h_0 = bridge(s)
        h_t = decoder(D(E[target_t]), h_{t-1})
        context_t = attention(h_t, memory)
        hidden_t = D(tanh(W [context_t; h_t]))

    Use this model as the backbone of a `keras_drill.SequenceToSequence`. `memory` holds the
    encoder's outputs for all source positions, and `s` the last states of the encoder's layers.
    context_t is the attention's weighted mean of `memory`. E is the embedding of the target's
    words, D a dropout, and W a weight matrix; `[a; b]` concatenates vectors. Without attention,
    `hidden_t = D(tanh(W h_t))`. The bridge gives each decoder layer the last state of the encoder
    layer of the same depth. After a bidirectional encoder, the bridge has dense layers that reduce
    the state to the decoder's width. Without input feeding, attention is computed for all positions
    at once. With input feeding, `hidden_{t-1}` is part of the decoder's next input, and attention
    is computed inside the time loop.

    Input: `{"source": [B, S], "target": [B, T]}`, integers: B pairs of S source words and T target
    words. In the target, padding must come after the words. Output shape: `[B, T, embedding_dim]`.
    The output mask excludes the target's padding.

    With scheduled sampling (`keras_drill.ScheduledSampling`), the decoder runs twice. The first
    run, without gradients, chooses the input words one after the other: each replacement is
    predicted from the words chosen before. The second run reads the chosen words with gradients,
    and with the same dropout masks.

    Args:
        vocabulary_size: Number of words V of the target's vocabulary.
        embedding_dim: Width d of embeddings and hidden states.
        units: Number of units of each recurrent layer, and for a bidirectional encoder of each
            direction.
        num_layers: Number of layers of the decoder, and by default of the encoder.
        cell: Kind of the recurrent layers, "lstm" or "gru".
        bidirectional: Whether the encoder reads in both directions.
        attention: A `keras_drill.layers.Attention` or
            `keras_drill.layers.MultiHeadSourceAttention`; `None` for a decoder that receives only
            the encoder's last state.
        input_feeding: Whether `hidden_{t-1}` is part of the decoder's input at step t. Needs
            `attention`.
        reverse_source: Whether the encoder reads the source x_1 ... x_S backwards, x_S ... x_1.
            Needs `bidirectional=False`.
        source_end_last: With `reverse_source`, whether the encoder reads the source's last token,
            its end symbol, last: x_{S-1} ... x_1 x_S. The decoder then begins in the state after
            the end symbol, as with a source that is read forwards. Otherwise the encoder reads the
            end symbol first, where the symbol carries no information. If `True`, padding must come
            after the source's tokens.
        dropout: Dropout rate on embedded words, between layers, and on the hidden states. All time
            steps of a sequence share the mask.
        pad_id: Padding token of source and target; `None` for no padding.
        seed: Integer seed of all random choices outside of the attention, or `None` for a random
            seed.
        embedding: The embedding of the target's words, of width d: a `keras.layers.Embedding` or a
            `keras_drill.SenseEmbedding`; `None` creates an `Embedding`. A `SenseEmbedding` weighs
            the senses of target words by its `weighting`: by their posterior given the hidden state
            that predicted the word, or by their usage. Senses of source words are always weighed by
            usage.
        source_vocabulary_size: Number of words of the source's vocabulary. With `None`, source and
            target share the vocabulary, and by default the embedding.
        source_embedding: The embedding of the source's words. `None` creates one if
            `source_vocabulary_size` is given, and otherwise shares the target's.
        num_encoder_layers: Number of the encoder's layers; `None` is `num_layers`. Decoder layers
            beyond this number start from the state of the encoder's last layer.
        **kwargs: Keyword arguments of `keras.Model`; also `quantized_layers`, which only
            `from_config` passes, for a quantised model.

    Example:

    >>> attention = keras_drill.layers.Attention(keras_drill.layers.AdditiveScore(5))
    >>> backbone = keras_drill.models.RecurrentEncoderDecoder(31, 6, 7, attention=attention)
    >>> source, target = np.array([[3, 1, 4, 2]]), np.array([[1, 5, 9]])
    >>> tuple(backbone({"source": source, "target": target}).shape)
    (1, 3, 6)

    References:
        - [Bahdanau et al., 2015](https://arxiv.org/abs/1409.0473)
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025)
        - [Sutskever et al., 2014](https://arxiv.org/abs/1409.3215) (reversed source)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 256,
        units: int = 512,
        num_layers: int = 1,
        cell: str = "lstm",
        bidirectional: bool = True,
        attention: keras.layers.Layer | None = None,
        input_feeding: bool = False,
        reverse_source: bool = False,
        source_end_last: bool = False,
        dropout: float = 0.0,
        pad_id: int | None = 0,
        seed: int | None = None,
        embedding: keras.layers.Embedding | None = None,
        source_vocabulary_size: int | None = None,
        source_embedding: keras.layers.Embedding | None = None,
        num_encoder_layers: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.units = units
        self.num_layers = num_layers
        self.cell = cell
        self.bidirectional = bidirectional
        self.attention = attention
        self.input_feeding = input_feeding
        self.reverse_source = reverse_source
        self.source_end_last = source_end_last
        self.dropout = dropout
        self.pad_id = pad_id
        self.seed = seed
        self.source_vocabulary_size = source_vocabulary_size
        self.num_encoder_layers = num_encoder_layers
        self._check_arguments()
        self.embedding = self._word_embedding(embedding, vocabulary_size, "embedding")
        self.source_embedding = None
        if source_vocabulary_size is not None or source_embedding is not None:
            self.source_embedding = self._word_embedding(
                source_embedding, source_vocabulary_size or vocabulary_size, "source_embedding"
            )
        self.encoder = self._make_encoder()
        self.decoder = self._make_decoder()

    def _check_arguments(self):
        if self.cell not in CELLS:
            raise ValueError(f"`cell` must be one of {tuple(CELLS)}. Received: cell={self.cell!r}")
        for name in ("num_layers", "num_encoder_layers"):
            number = getattr(self, name)
            if name == "num_encoder_layers" and number is None:
                continue
            if not isinstance(number, int) or number < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={number!r}")
        if self.input_feeding and self.attention is None:
            raise ValueError(
                "`input_feeding` needs `attention`: set `attention`, or `input_feeding=False`. "
                "Received: input_feeding=True, attention=None"
            )
        if self.reverse_source and self.bidirectional:
            raise ValueError(
                "`reverse_source` must be False if the encoder is bidirectional. "
                "Received: reverse_source=True, bidirectional=True"
            )
        if self.source_end_last and not self.reverse_source:
            raise ValueError(
                "`source_end_last` needs `reverse_source=True`. "
                "Received: source_end_last=True, reverse_source=False"
            )

    def _word_embedding(self, embedding, vocabulary_size, name):
        size = self.embedding_dim
        initializer = partial(keras.initializers.RandomNormal, stddev=size**-0.5)
        return word_embedding(
            embedding, vocabulary_size, size, name, initializer, self.seed, self.dtype_policy
        )

    def _layer_seed(self, index: int) -> int | None:
        """A different seed for each random choice, so that their numbers are independent."""
        return None if self.seed is None else 1000 * self.seed + index

    def _make_layers(self, name: str, count: int, first_seed: int) -> list:
        """Makes recurrent layers with the options of this backbone."""
        seeds = [self._layer_seed(first_seed + index) for index in range(50 + count)]
        return make_layers(self.cell, self.units, count, seeds, name, self.dtype_policy)

    def _make_encoder(self):
        count = self.num_encoder_layers or self.num_layers
        return RecurrentEncoder(
            self.source_embedding or self.embedding,
            self._make_layers("forward", count, first_seed=100),
            self._make_layers("backward", count, first_seed=200) if self.bidirectional else [],
            dropout=self.dropout,
            reverse=self.reverse_source,
            end_last=self.source_end_last,
            seed=self._layer_seed(300),
            dtype=self.dtype_policy,
            name="encoder",
        )

    def _make_decoder(self):
        layers = self._make_layers("recurrent", self.num_layers, first_seed=400)
        num_states = layers[0].num_states
        bridges = [
            keras.layers.Dense(
                self.units,
                activation=None if i % num_states else "tanh",  # as the cell state and h
                kernel_initializer=keras.initializers.GlorotUniform(self._layer_seed(500 + i)),
                dtype=self.dtype_policy,
                name=f"bridge_{i}",
            )
            for i in range(num_states * self.num_layers * self.bidirectional)
        ]
        state = AttentionalState(
            self.embedding_dim,
            self.attention,
            keras.initializers.GlorotUniform(self._layer_seed(600)),
            dtype=self.dtype_policy,
            name="attentional_state",
        )
        return RecurrentDecoder(
            self.embedding,
            layers,
            bridges,
            state,
            input_feeding=self.input_feeding,
            dropout=self.dropout,
            seed=self._layer_seed(700),
            dtype=self.dtype_policy,
            name="decoder",
        )

    @property
    def inputs_shape(self) -> dict[str, Shape]:
        """Input shapes for which `keras_drill.SequenceToSequence` builds this backbone."""
        return PAIRS_SHAPE

    def build(self, input_shape: dict[str, Shape]) -> None:
        self.encoder.build(input_shape["source"])
        self.decoder.build(input_shape["target"], self.encoder.layer_sizes)
        self.quantize_layers()

    def token_mask(self, tokens: Tensor) -> Tensor | None:
        """Returns a bool mask of the shape of `tokens` (integers `[B, T]` or `[B, S]`), false for
        padding; `None` if `pad_id` is `None`.
        """
        return None if self.pad_id is None else ops.not_equal(tokens, self.pad_id)

    def encode(self, source: Tensor, training: bool = False) -> tuple[Tensor, list[list[Tensor]]]:
        """Computes the encoder's outputs `[B, S, m]`, and for each layer a list of its last states.

        `source` is `[B, S]` integers, and m is `units`, or `2 * units` for a bidirectional encoder.
        The states are h and c for LSTMs and h for GRUs, `[B, m]` each.
        """
        return self.encoder(source, mask=self.token_mask(source), training=training)

    def call(self, inputs: Any, training: bool = False, own_words: Any = None) -> Any:
        source = inputs["source"]
        memory, states = self.encode(source, training=training)
        return self.decoder(
            inputs["target"],
            memory,
            states,
            source_mask=self.token_mask(source),
            training=training,
            own_words=own_words,
        )

    def begin_decoding(
        self, inputs: dict[str, Tensor], batch_size: int, length: int
    ) -> tuple[dict[str, Tensor], tuple]:
        """Encodes the source. Returns `(constants, cache)` before the first target word.

        `keras_drill.decoding.CacheReader` calls this method, and then `read_column` for each word.
        The constants are the encoded source, and the cache is the decoder's state.

        Args:
            inputs: `{"source": [B, S]}`, integers.
            batch_size: The number of sources B, an integer or a scalar tensor.
            length: Largest number of target words to read. Unused, since the size of a recurrent
                state does not depend on this number.
        """
        source = inputs["source"]
        memory, states = self.encode(source)
        constants = self.decoder.attentional_state.project(memory, self.token_mask(source))
        return constants, self.decoder.empty_cache(states)

    def read_column(
        self, tokens: Tensor, constants: dict[str, Tensor], cache: tuple
    ) -> tuple[Tensor, tuple]:
        """Reads the next word of each row. Returns hidden states `[R, d]` and the new cache.

        A row is an unfinished target. In a beam search, each of the B sources has R / B rows.

        Args:
            tokens: `[R]` integers, the words.
            constants: The first result of `begin_decoding`.
            cache: The second result of the previous `read_column`, or of `begin_decoding`. The
                cache of `begin_decoding` has B rows; if R is larger, a search first repeats each
                row R / B times.
        """
        hidden, cache, _ = self.decoder.step(tokens, constants, cache)
        return hidden, cache

    def source_mask(self, constants: Any) -> Any:
        """Returns booleans `[B, S]`, true for positions of the source that are not padding.

        Args:
            constants: The first result of `begin_decoding`.

        Raises:
            ValueError: The decoder has no attention.
        """
        if self.attention is None:
            raise ValueError(
                "`coverage_penalty` and `return_attention` need a decoder with attention. "
                "Received: attention=None"
            )
        return constants["mask"]

    def read_column_with_attention(
        self, tokens: Tensor, constants: Any, cache: Any
    ) -> tuple[Any, Any, Any]:
        """Returns `(hidden, cache, weights)`: the results of `read_column`, which has the same
        arguments, and the attention weights of each row on the S source positions, `[R, S]`
        (`None` without attention).
        """
        return self.decoder.step(tokens, constants, cache)

    def compute_mask(
        self, inputs: dict[str, Tensor], previous_mask: Tensor | None = None
    ) -> Tensor | None:
        return self.token_mask(inputs["target"])

    def compute_output_shape(self, input_shape: dict[str, Shape]) -> Shape:
        return (*input_shape["target"], self.embedding_dim)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "units": self.units,
            "num_layers": self.num_layers,
            "cell": self.cell,
            "bidirectional": self.bidirectional,
            "input_feeding": self.input_feeding,
            "reverse_source": self.reverse_source,
            "source_end_last": self.source_end_last,
            "dropout": self.dropout,
            "pad_id": self.pad_id,
            "seed": self.seed,
            "source_vocabulary_size": self.source_vocabulary_size,
            "num_encoder_layers": self.num_encoder_layers,
            "attention": serialize_layer(self.attention),
            "embedding": serialize_layer(self.embedding),
            "source_embedding": serialize_layer(self.source_embedding),
        }

    @classmethod
    def from_config(cls, config: dict) -> "RecurrentEncoderDecoder":
        return cls(**deserialize_layers(config, "attention", "embedding", "source_embedding"))
