"""The encoder–decoder and the decoder-only Transformer."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_drill.layers.inner_layers import serialize_layer
from keras_drill.models.backbone_inputs import PAIRS_SHAPE
from keras_drill.models.transformer_backbone import TransformerBackbone
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class Transformer(TransformerBackbone):
    """Encoder–decoder Transformer without output layer: maps source and target to hidden states.

        memory = encoder(source),    hidden_t = decoder(target_{<=t}, memory)

    Use this model as the backbone of a `keras_drill.SequenceToSequence`. The defaults are the
    paper's "base" model. The paper's "big" model has `embedding_dim=1024, num_heads=16,
    feed_forward_dim=4096, dropout=0.3`. The Transformer in the paper on kernelized Bayesian softmax
    (KerBS) has `embedding_dim=288, num_layers=5, num_heads=2, feed_forward_dim=507`.

    Input: `{"source": [B, S], "target": [B, T]}`, integers: B pairs of S source words and T target
    words. Output shape: `[B, T, embedding_dim]`. The output mask excludes the target's padding.

    Args:
        vocabulary_size: Number of words V of the target's vocabulary.
        embedding_dim: Width d of embeddings and hidden states.
        num_layers: Number of layers of the decoder, and by default of the encoder. Default: 6.
        num_heads: Number of attention heads, a divisor of d. Default: 8.
        feed_forward_dim: Width of the feed-forward networks' inner layer. Default: 2048.
        dropout: Dropout rate on embedded tokens and on every sublayer's output. Default: 0.1.
        attention_dropout: Dropout rate on attention weights. With a rate above 0, Keras does not
            use fused attention, so training may be slower. Default: 0.
        activation_dropout: Dropout rate on the feed-forward networks' inner layer. Default: 0.
        activation: Activation of the feed-forward networks. Default: "relu".
        norm_first: Whether layer normalisation is before each sublayer ("pre-norm") instead of
            after it. Default: `False`.
        positions: Positional encodings, "sinusoidal" or "learned". Default: "sinusoidal".
        max_length: Number of learned positions, and so the length of the longest possible sequence.
            Required with "learned", and `None` (default) with "sinusoidal". See
            `keras_drill.layers.TransformerStack` for longer sequences.
        scale_embedding: Whether embeddings are multiplied by √d. Default: `True`.
        pad_id: Padding token of source and target; `None` for no padding. Default: 0.
        seed: Integer seed of all random choices, or `None` (default) for a random seed.
        embedding: The embedding of the target's words, of width d: a `keras.layers.Embedding` or a
            `keras_drill.SenseEmbedding`; `None` (default) creates an `Embedding`. A
            `SenseEmbedding` weighs senses by their usage, whatever its `weighting`. Their posterior
            is not available, since all positions are computed in parallel.
        source_vocabulary_size: Number of words of the source's vocabulary. With `None`, source and
            target share the vocabulary, and by default the embedding.
        source_embedding: The embedding of the source's words. `None` creates one if
            `source_vocabulary_size` is given, and otherwise shares the target's.
        num_encoder_layers: Number of the encoder's layers; `None` is `num_layers`.
        **options: Keyword arguments of `keras.Model`.

    Example:

    >>> backbone = keras_drill.models.Transformer(31, 6, num_layers=2, num_heads=2)
    >>> source, target = np.array([[3, 1, 4, 2]]), np.array([[1, 5, 9]])
    >>> tuple(backbone({"source": source, "target": target}).shape)
    (1, 3, 6)

    References:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 512,
        source_vocabulary_size: int | None = None,
        source_embedding: keras.layers.Embedding | None = None,
        num_encoder_layers: int | None = None,
        **options: Any,
    ):
        super().__init__(vocabulary_size, embedding_dim, **options)
        self.source_vocabulary_size = source_vocabulary_size
        self.num_encoder_layers = num_encoder_layers
        self.source_embedding = None
        if source_vocabulary_size is not None or source_embedding is not None:
            self.source_embedding = self.check_embedding(
                source_embedding, source_vocabulary_size or vocabulary_size, "source_embedding"
            )
        self.encoder = self.make_stack(
            self.source_embedding or self.embedding,
            num_encoder_layers or self.num_layers,
            seed_offset=0,
            name="encoder",
        )
        self.decoder = self.make_stack(
            self.embedding,
            self.num_layers,
            seed_offset=1,
            name="decoder",
            causal=True,
            attends_source=True,
        )

    @property
    def inputs_shape(self) -> Mapping[str, Shape]:
        """Input shapes for which `keras_drill.SequenceToSequence` builds this backbone."""
        return PAIRS_SHAPE

    def build(self, input_shape: Mapping[str, Shape]) -> None:
        source_shape = input_shape["source"]
        self.encoder.build(source_shape)
        self.decoder.build(input_shape["target"], (*source_shape, self.embedding_dim))
        self.quantize_layers()

    def encode(self, source: Tensor, training: bool = False) -> Tensor:
        """Computes the encoder's hidden states `[B, S, d]` of source words, integers `[B, S]`."""
        return self.encoder(source, mask=self.token_mask(source), training=training)

    def call(self, inputs: Mapping[str, Tensor], training: bool = False) -> Tensor:
        source, target = inputs["source"], inputs["target"]
        return self.decoder(
            target,
            self.encode(source, training=training),
            mask=self.token_mask(target),
            source_mask=self.token_mask(source),
            training=training,
        )

    def begin_decoding(self, inputs: Any, batch_size: int, length: int) -> tuple[tuple, tuple]:
        """Encodes the source. Returns `(constants, cache)` before the first target word.

        `keras_drill.decoding.CacheReader` calls this method, and then `read_column` for each word.
        The constants are the encoded source. The cache has the keys and values of earlier words.

        Args:
            inputs: `{"source": [B, S]}`, integers.
            batch_size: The number of sources B, an integer or a scalar tensor.
            length: Largest number of target words to read.
        """
        source = inputs["source"]
        constants = self.decoder.project_source(self.encode(source)), self.token_mask(source)
        caches = self.decoder.empty_caches(batch_size, length)
        return constants, (caches, ops.zeros((batch_size,), "int32"))

    def read_column(self, tokens: Tensor, constants: tuple, cache: tuple) -> tuple[Tensor, tuple]:
        """Reads the next word of each row. Returns hidden states `[R, d]` and the new cache.

        A row is an unfinished target. In a beam search, each of the B sources has R / B rows.

        Args:
            tokens: `[R]` integers, the words.
            constants: The first result of `begin_decoding`.
            cache: The second result of the previous `read_column`, or of `begin_decoding`. The
                cache of `begin_decoding` has B rows; if R is larger, a search first repeats each
                row R / B times.
        """
        caches, position = cache
        hidden, caches = self.decoder.step(tokens, caches, position, *constants)
        return hidden, (caches, position + 1)

    def source_mask(self, constants: Any) -> Any:
        """Returns booleans `[B, S]`, true for positions of the source that are not padding.

        Args:
            constants: The first result of `begin_decoding`.
        """
        sources, mask = constants
        return ops.ones(ops.shape(sources[-1][0])[:2], "bool") if mask is None else mask

    def read_column_with_attention(
        self, tokens: Tensor, constants: Any, cache: Any
    ) -> tuple[Any, Any, Any]:
        """Returns `(hidden, cache, weights)`: the results of `read_column`, which has the same
        arguments, and the attention weights of each row on the S source positions, `[R, S]`.

        The weights are those of the last layer, averaged over heads.
        """
        caches, position = cache
        sources, mask = constants
        hidden, caches, attention = self.decoder.step(
            tokens, caches, position, sources, mask, return_attention=True
        )
        return hidden, (caches, position + 1), attention

    def compute_mask(
        self, inputs: Mapping[str, Tensor], previous_mask: Tensor | None = None
    ) -> Tensor | None:
        return self.token_mask(inputs["target"])

    def compute_output_shape(self, input_shape: Mapping[str, Shape]) -> Shape:
        return (*input_shape["target"], self.embedding_dim)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "source_vocabulary_size": self.source_vocabulary_size,
            "source_embedding": serialize_layer(self.source_embedding),
            "num_encoder_layers": self.num_encoder_layers,
        }


@keras.saving.register_keras_serializable(package="keras_drill")
class TransformerLanguageBackbone(TransformerBackbone):
    """Decoder-only Transformer without output layer: maps tokens to hidden states.

    Use this model as the backbone of a `keras_drill.LanguageModel`.

    Input shape: tokens `[B, T]` int, B sequences of T tokens. Output shape:
    `[B, T, embedding_dim]`. The output mask excludes padding.

    Args:
        vocabulary_size: Number of words V.
        embedding_dim: Width d of embeddings and hidden states.
        num_layers: Number of layers.
        pad_id: Id of the padding token; `None` for no padding.
        **options: Other arguments of `Transformer`, except `source_vocabulary_size`,
            `source_embedding` and `num_encoder_layers`.

    Example:

    >>> backbone = keras_drill.models.TransformerLanguageBackbone(31, 6, 2, num_heads=2)
    >>> tuple(backbone(np.array([[3, 1, 4], [1, 5, 9]])).shape)
    (2, 3, 6)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 512,
        num_layers: int = 6,
        pad_id: int | None = None,
        **options: Any,
    ):
        super().__init__(vocabulary_size, embedding_dim, num_layers, pad_id=pad_id, **options)
        self.decoder = self.make_stack(
            self.embedding, num_layers, seed_offset=1, name="decoder", causal=True
        )

    @property
    def inputs_shape(self) -> Shape:
        """Input shape for which `keras_drill.LanguageModel` builds this backbone."""
        return (None, None)

    def build(self, input_shape: Shape) -> None:
        self.decoder.build(input_shape)
        self.quantize_layers()

    def call(self, tokens: Tensor, training: bool = False) -> Tensor:
        return self.decoder(tokens, mask=self.token_mask(tokens), training=training)

    def begin_decoding(self, inputs: Any, batch_size: int, length: int) -> tuple[tuple, tuple]:
        """Returns `((), cache)` before the first word.

        `keras_drill.decoding.CacheReader` calls this method, and then `read_column` for each word.
        The cache has the keys and values of earlier words. The empty tuple stands for the encoded
        source, which a language model does not have.

        Args:
            inputs: `None`, since the model has no inputs except tokens.
            batch_size: The number of sequences B, an integer or a scalar tensor.
            length: Largest number of words to read.
        """
        if inputs is not None:
            raise ValueError(
                "`inputs` must be None, since a language model has no source. "
                f"Received: inputs={inputs}"
            )
        caches = self.decoder.empty_caches(batch_size, length)
        return (), (caches, ops.zeros((batch_size,), "int32"))

    def read_column(self, tokens: Tensor, constants: tuple, cache: tuple) -> tuple[Tensor, tuple]:
        """Reads the next word of each row. Returns hidden states `[R, d]` and the new cache.

        A row is an unfinished sequence. In a beam search, each of the B sequences of
        `begin_decoding` has R / B rows.

        Args:
            tokens: `[R]` integers, the words.
            constants: The empty tuple of `begin_decoding`.
            cache: The second result of the previous `read_column`, or of `begin_decoding`. The
                cache of `begin_decoding` has B rows; if R is larger, a search first repeats each
                row R / B times.
        """
        caches, position = cache
        hidden, caches = self.decoder.step(tokens, caches, position)
        return hidden, (caches, position + 1)

    def compute_mask(self, tokens: Tensor, previous_mask: Tensor | None = None) -> Tensor | None:
        return self.token_mask(tokens)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, self.embedding_dim)
