from typing import Any

import keras

from keras_drill.compositions import Composition, MultiSense, Softmax
from keras_drill.fused_loss.placement import check_rows, check_split_alike
from keras_drill.label_encoders import IdentityLabelEncoder, LabelEncoder
from keras_drill.output_layer import losses
from keras_drill.output_layer.check_arguments import (
    ADVICE,
    check_arguments,
    check_embedding,
    part,
)
from keras_drill.output_layer.check_loss import check_compiled_loss
from keras_drill.output_layer.folding import fold
from keras_drill.output_layer.word_probabilities import WordProbabilities
from keras_drill.scores import InnerProduct, Score
from keras_drill.senses import SenseEmbedding
from keras_drill.types import Constraint, Initializer, Regularizer, Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class OutputLayer(WordProbabilities):
    """An output layer for language generation: label encoder × score × composition.

    - The *label encoder* turns word embeddings into *labels*, the output embeddings of the words
      (identity, bilinear, dual nonlinear, deep residual). Some label encoders also map hidden
      states into the labels' space.
    - The *score* compares a hidden state with a label (inner product, or the kernel
      `keras_drill.scores.KerBSKernel`).
    - The *composition* turns scores into log-probabilities of words (softmax, several senses per
      word, mixture of softmaxes).

    There are M labels: one for each of the V words or, if words have several senses, one for each
    sense.

    For a layer `head`, `head(hidden)` returns the log-probabilities of all words. Use Keras losses
    with `from_logits=True`. A loss given by its name, such as `"sparse_categorical_crossentropy"`,
    expects probabilities: the loss would clip all log-probabilities, which are negative, and have
    no gradient. On TensorFlow, the first training step of a functional or sequential model with
    such a loss raises an error.

    `head.loss(hidden, targets)` returns the cross-entropy without building the matrix of all
    log-probabilities. This *fused loss* splits the tokens into groups (tiles). It computes the
    scores, the loss and the gradients of one tile together, then drops the scores.

    `head(hidden, targets=targets)` adds the fused loss to the layer's losses (`add_loss`) and
    returns the log-probabilities of the targets. Use this call to train a functional model with the
    fused loss, for example one with several outputs.

    Call arguments:
        hidden: Hidden states `[..., d_h]`.
        targets: `None`, or `[...]` integers, the indices of the words to predict, in
            `[0, vocabulary_size)`.
        sample_weight: With targets: `None`, or weights of the tokens, of the shape of `targets` or
            of its first axes. Tokens masked in `hidden` have weight 0.
        label_smoothing: With targets: share of a target's probability that is distributed over all
            words, in [0, 1).

    Output shape: `[..., vocabulary_size]`, or `[...]` with targets; float32, or float64 if this is
    the compute dtype.

    Args:
        vocabulary_size: Number of words V.
        embedding: A `keras.layers.Embedding` with one row per label (or with `pad_labels_to`
            rows), or a `keras_drill.SenseEmbedding`. The layer computes its labels from the
            embedding's table (weight tying). The embedding stays shared when the model is saved,
            cloned or rebuilt from its config: in models of this package, and in functional models
            whose hidden states are computed from the embedding. Your own model classes must call
            `head.tie_to(embedding)` after they are rebuilt. The embedding may be quantised or have
            LoRA. From a `ReversibleEmbedding` with `tie_weights=False`, the layer uses the output
            table. With `None`, the layer has its own label embeddings.
        label_encoder: A `keras_drill.LabelEncoder`; `None` is the identity, for labels that are the
            embeddings.
        score: A `keras_drill.scores.Score`; `None` is the inner product, or the score of a
            `SenseEmbedding`.
        composition: A `keras_drill.compositions.Composition`; `None` is the softmax, or with a
            `SenseEmbedding` a softmax over several senses per word (`MultiSense`).
        embedding_dim: Width of the layer's own label embeddings, without `embedding`; `None` is the
            width of the hidden states.
        use_bias: Whether every label has a bias.
        logit_soft_cap: Bound c of the scores: each score s, with its bias, becomes
            `c * tanh(s / c)`. `None` for no bound.
        z_loss: Coefficient of the term `logsumexp(scores)^2` in the loss of every token.
        tile_size: Tokens per tile of the fused loss. `None` derives the number from `tile_bytes`.
        tile_bytes: Memory for one tile of scores, in bytes. `None` is 2 GiB on GPUs and TPUs. On
            CPUs the default is 144 MiB, or three eighths of the memory of the labels' gradient if
            this is more. If labels are frozen and there are no biases, the fused loss usually
            stores no scores and needs less memory.
        embeddings_initializer: Initializer of the layer's own label embeddings.
        embeddings_regularizer: Regularizer of the layer's own label embeddings.
        embeddings_constraint: Constraint of the layer's own label embeddings.
        bias_initializer: Initializer of the biases, for example a function that returns the words'
            log-frequencies.
        pad_labels_to: Number of rows of the embedding and of the layer's variables, at least the
            number of words. If devices split the vocabulary (see
            `keras_drill.distribute.layout_map`), this must be a multiple of the number of devices.
            Additional rows have probability 0 and no gradient. `None` is one row for each label. If
            words have several senses, use `num_senses` instead.
        **kwargs: Keyword arguments of `keras.layers.Layer`. `trainable=False`, set here or later,
            freezes the layer's own weights and the assignment of senses to words, but not a shared
            `embedding`, which has a `trainable` of its own.

    Raises:
        ValueError: An argument is out of range or does not match another.

    Example:

    A language model with a tied deep residual output layer:

    >>> embedding = keras.layers.Embedding(101, 13)
    >>> head = keras_drill.OutputLayer(
    ...     101,
    ...     embedding=embedding,
    ...     label_encoder=keras_drill.ResidualLabelEncoder(depth=2, activation="relu"),
    ... )
    >>> tokens = keras.Input((None,), dtype="int32")
    >>> hidden = keras.layers.LSTM(13, return_sequences=True)(embedding(tokens))
    >>> model = keras.Model(tokens, head(hidden))
    >>> model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    Loss and log-probabilities of targets, without the matrix of all log-probabilities:

    >>> hidden, targets = keras.ops.ones((3, 7, 13)), keras.ops.ones((3, 7), "int32")
    >>> head.loss(hidden, targets).shape, head.log_prob(hidden, targets).shape
    (TensorShape([]), TensorShape([3, 7]))

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513)
        - [Press & Wolf, 2017](https://arxiv.org/abs/1608.05859) (weight tying)
        - [Wijmans et al., 2024](https://arxiv.org/abs/2411.09009) (fused cross-entropy)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: keras.layers.Embedding | None = None,
        label_encoder: LabelEncoder | None = None,
        score: Score | None = None,
        composition: Composition | None = None,
        embedding_dim: int | None = None,
        use_bias: bool = True,
        logit_soft_cap: float | None = None,
        z_loss: float = 0.0,
        tile_size: int | None = None,
        tile_bytes: int | None = None,
        embeddings_initializer: Initializer = "glorot_uniform",
        embeddings_regularizer: Regularizer = None,
        embeddings_constraint: Constraint = None,
        bias_initializer: Initializer = "zeros",
        pad_labels_to: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(embedding, **kwargs)
        self.vocabulary_size = vocabulary_size
        label_encoder = part("label_encoder", label_encoder, LabelEncoder, "ResidualLabelEncoder()")
        score = part("score", score, Score, "scores.InnerProduct()")
        composition = part("composition", composition, Composition, "compositions.Softmax()")
        self.label_encoder = label_encoder or IdentityLabelEncoder(dtype=self.dtype_policy)
        if score is None:
            score = embedding.score if isinstance(embedding, SenseEmbedding) else InnerProduct()
        self.score = score
        if composition is None and isinstance(embedding, SenseEmbedding):
            composition = MultiSense(**embedding.allocation.arguments, dtype=self.dtype_policy)
        self.composition = composition or Softmax(dtype=self.dtype_policy)
        self.embedding_dim = embedding_dim
        self.use_bias = use_bias
        self.logit_soft_cap = logit_soft_cap
        self.z_loss = z_loss
        self.tile_size = tile_size
        self.tile_bytes = tile_bytes
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = keras.constraints.get(embeddings_constraint)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.pad_labels_to = pad_labels_to
        self.supports_masking = True
        self._hidden_shape = None
        check_arguments(self)
        self.label_encoder.check_words(vocabulary_size)
        if embedding is not None:
            self.check_embedding(embedding)
            self._share_senses()

    def _share_senses(self):
        if isinstance(self.embedding, SenseEmbedding) and isinstance(self.composition, MultiSense):
            self.composition.share(self.embedding.allocation)

    def check_embedding(self, embedding: keras.layers.Embedding) -> None:
        check_embedding(self, embedding)

    def tie_to(self, embedding: keras.layers.Embedding | None) -> None:
        before = self.embedding
        super().tie_to(embedding)
        if self.embedding is not before:
            self._share_senses()

    def build(self, hidden_shape: Shape) -> None:
        hidden_width = losses.hidden_width(hidden_shape)
        num_labels = self.composition.num_labels(self.vocabulary_size)
        rows = self._num_rows = self.pad_labels_to or num_labels
        if self.embedding is None:
            check_rows(f"{self.path}/label_embeddings", rows, ADVICE)
            self._width = width = self.embedding_dim or hidden_width
            is_read = self.label_encoder.reads_embeddings
            self.label_embeddings = self.add_weight(
                shape=(rows, width if is_read else 0),
                trainable=is_read,
                initializer=self._labels_start(),
                regularizer=self.embeddings_regularizer,
                constraint=self.embeddings_constraint,
                name="label_embeddings",
            )
        else:
            self._width = width = self.embedding.output_dim
            if not self.embedding.built:
                self.embedding.build(None)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(rows,), initializer=self._bias_start(), name="bias", autocast=False
            )
        if not isinstance(self.embedding, SenseEmbedding):
            self.own_score_parameters = [
                self.add_weight(shape=(rows,), initializer=value, name=name, autocast=False)
                for name, value in self.score.parameter_initializers.items()
            ]
        table, axis = self._table
        check_split_alike(table, axis, [self.bias, *self.score_parameters])
        self._hidden_shape = tuple(hidden_shape)
        if not self.trainable:  # Keras handles only a layer's own weights
            self.label_encoder.trainable = self.composition.trainable = False
        if not self.composition.built:
            self.composition.build(tuple(hidden_shape), (num_labels, width))
        if not self.label_encoder.built:
            context_shape = self.composition.context_shape(hidden_shape)
            self.label_encoder.build((num_labels, width), context_shape)
        self.built = True

    def _labels_start(self) -> Any:
        """Returns the initializer of the layer's own label embeddings."""
        return self.embeddings_initializer

    def _bias_start(self) -> Any:
        """Returns the initializer of the biases."""
        return self.bias_initializer

    @property
    def embeddings(self) -> Tensor:
        """The table `[M, d]` of embeddings from which the M labels are computed; d is their width.

        The table is a variable, or a tensor if the shared `embedding` has LoRA, is quantised, or
        has an output table of its own (`tie_weights=False`).
        """
        return self.label_embeddings if self.embedding is None else super().embeddings

    @property
    def learns_senses(self) -> bool:
        """Whether the layer and its shared embedding, if there is one, are not frozen.

        Only then, training counts the use of senses and may move senses to other words. The
        property is irrelevant for layers with one sense per word.
        """
        return self.trainable and (self.embedding is None or self.embedding.trainable)

    @property
    def score_parameters(self) -> list[keras.Variable]:
        """The score's variables, `[M]` each (none for the inner product). With a `SenseEmbedding`,
        these are its `score_parameters`.
        """
        if isinstance(self.embedding, SenseEmbedding):
            return self.embedding.score_parameters
        return self.own_score_parameters

    def call(
        self,
        hidden: Tensor,
        targets: Tensor | None = None,
        sample_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        training: bool | None = None,
    ) -> Tensor:
        """Computes log-probabilities of all words or, if given, of `targets`; see the class for the
        arguments.
        """
        if targets is not None:
            return losses.add_fused_loss(
                self, hidden, targets, sample_weight, label_smoothing, bool(training)
            )
        if training:
            check_compiled_loss(self)
        return self._log_probs(hidden, self._labels(training), training)

    def compute_output_spec(
        self,
        hidden: Tensor,
        targets: Tensor | None = None,
        sample_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        training: bool | None = None,
    ) -> keras.KerasTensor:
        losses.hidden_width(hidden.shape, self._hidden_shape)
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        shape = self.compute_output_shape(hidden.shape) if targets is None else targets.shape
        return keras.KerasTensor(shape, dtype=dtype)

    def compute_output_shape(self, hidden_shape: Shape) -> Shape:
        return (*hidden_shape[:-1], self.vocabulary_size)

    def folded(self) -> "OutputLayer":
        """Returns a copy of a built output layer for inference, in which the labels are constant.

        The copy stores the labels that the label encoder computes, instead of the encoder.

        Returns:
            A built, frozen `OutputLayer` with the same probabilities, as fast as weight tying. The
            copy shares no variables with this layer, so later training does not change the copy.
        """
        return fold(self)

    def _make_folded(self, **arguments) -> "OutputLayer":
        """Makes the layer for `folded`, with `arguments` and this layer's other options."""
        return OutputLayer(
            self.vocabulary_size,
            score=self.score,
            composition=self.composition.constant_copy(),
            **arguments,
        )

    def get_config(self) -> dict:
        def serialize(x):
            return x and keras.saving.serialize_keras_object(x)

        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "label_encoder": serialize(self.label_encoder),
            "score": serialize(self.score),
            "composition": serialize(self.composition),
            "embedding_dim": self.embedding_dim,
            "use_bias": self.use_bias,
            "logit_soft_cap": self.logit_soft_cap,
            "z_loss": self.z_loss,
            "tile_size": self.tile_size,
            "tile_bytes": self.tile_bytes,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "embeddings_regularizer": keras.regularizers.serialize(self.embeddings_regularizer),
            "embeddings_constraint": keras.constraints.serialize(self.embeddings_constraint),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "pad_labels_to": self.pad_labels_to,
        }

    @classmethod
    def from_config(cls, config: dict) -> "OutputLayer":
        return super().from_config(dict(config))
