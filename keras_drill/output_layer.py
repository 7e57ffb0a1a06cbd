import math

import keras
from keras import ops

from keras_drill.compositions import MultiSense, Softmax
from keras_drill.label_encoders import FoldedLabelEncoder, IdentityLabelEncoder
from keras_drill.ops.check_targets import check_targets
from keras_drill.ops.fused_loss import token_losses, weighted_loss
from keras_drill.ops.num_replicas import num_replicas
from keras_drill.ops.shared_embedding import find_upstream_embedding, replace_sublayer
from keras_drill.ops.tile_walk import WalkInputs
from keras_drill.ops.walk_options import DEFAULT_TILE_BYTES, WalkOptions
from keras_drill.scores import InnerProduct
from keras_drill.senses import SenseEmbedding

REDUCTIONS = ("sum_over_batch_size", "mean", "mean_with_sample_weight", "sum", "none", None)


@keras.saving.register_keras_serializable(package="keras_drill")
class OutputLayer(keras.layers.Layer):
    """An output layer for language generation: label encoder × score × composition.

    - The *label encoder* turns word embeddings into output labels (identity, bilinear, dual
      nonlinear, deep residual) and may map hidden states into the labels' space.
    - The *score* compares a hidden state with a label (inner product, KerBS kernel).
    - The *composition* turns scores into log-probabilities of words (softmax, several senses a
      word, mixture of softmaxes).

    Called, it gives log-probabilities of all words, so that any Keras loss with
    `from_logits=True` is right. `loss` gives the cross-entropy without ever building that matrix:
    it walks over tiles of tokens and computes scores, loss and gradients of a tile together.

    Shapes:
        hidden: `[..., d_h]`.
        targets, sample_weight: `[...]`.
        output: `[..., vocabulary_size]`, float32.

    Args:
        vocabulary_size: Number of words V.
        embedding: A `keras.layers.Embedding` of V rows whose table the labels are made from (weight
            tying), or a `keras_drill.SenseEmbedding`. It stays shared when the model is saved,
            cloned or made from its config. `None` gives the layer label embeddings of its own.
        label_encoder: A `keras_drill.LabelEncoder`; `None` is the identity.
        score: A `keras_drill.scores.Score`; `None` is the inner product.
        composition: A `keras_drill.compositions.Composition`; `None` is the softmax, or
            `MultiSense` with a `SenseEmbedding`.
        embedding_dim: Width of the layer's own label embeddings; `None` is the hidden state's.
        use_bias: Whether every label has a bias.
        logit_soft_cap: `c` bounds scores smoothly to (-c, c) by `c * tanh(score / c)`.
        z_loss: Coefficient of `lse(scores)^2`, added to the loss of every token.
        tile_size: Tokens per tile of the fused loss. `None` derives it from `tile_bytes`.
        tile_bytes: Memory for one tile of scores, in bytes; `None` is 144 MiB, or three eighths of
            what the labels' gradient takes if that is more: every tile adds to all of it.
        embeddings_initializer: Initializer of the layer's own label embeddings.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

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

    The same numbers without the matrix of log-probabilities:

    >>> hidden, targets = keras.ops.ones((3, 7, 13)), keras.ops.ones((3, 7), "int32")
    >>> head.loss(hidden, targets).shape, head.log_prob(hidden, targets).shape
    (TensorShape([]), TensorShape([3, 7]))

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513)
        - [Press & Wolf, 2017](https://arxiv.org/abs/1608.05859) (weight tying)
        - [Wijmans et al., 2024](https://arxiv.org/abs/2411.09009) (fused cross-entropy)
    """

    _least_tile_bytes = DEFAULT_TILE_BYTES

    def __init__(
        self,
        vocabulary_size,
        embedding=None,
        label_encoder=None,
        score=None,
        composition=None,
        embedding_dim=None,
        use_bias=True,
        logit_soft_cap=None,
        z_loss=0.0,
        tile_size=None,
        tile_bytes=None,
        embeddings_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        for name, value in {
            "vocabulary_size": vocabulary_size,
            "embedding_dim": embedding_dim,
            "tile_size": tile_size,
            "tile_bytes": tile_bytes,
        }.items():
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
        if vocabulary_size is None:
            raise ValueError("`vocabulary_size` must be a positive integer. Received: None")
        if logit_soft_cap is not None and not logit_soft_cap > 0:
            raise ValueError(f"`logit_soft_cap` must be positive. Received: {logit_soft_cap!r}")
        if z_loss < 0:
            raise ValueError(f"`z_loss` must not be negative. Received: z_loss={z_loss!r}")
        self.vocabulary_size = vocabulary_size
        self.embedding = embedding
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
        self.supports_masking = True
        self._embedding_is_copy = False
        if embedding is not None:
            self._check_embedding(embedding)
            self._share_senses()

    def _check_embedding(self, embedding):
        rows = self.composition.num_labels(self.vocabulary_size)
        if not isinstance(embedding, keras.layers.Embedding):
            raise ValueError(
                f"`embedding` must be a keras.layers.Embedding. Received: {embedding!r}"
            )
        if embedding.input_dim != rows:
            raise ValueError(
                f"`embedding` must have one row for each of the {rows} labels. "
                f"Received: input_dim={embedding.input_dim}"
            )
        if self.embedding_dim not in (None, embedding.output_dim):
            raise ValueError(
                f"`embedding_dim` must be None or the embedding's {embedding.output_dim}. "
                f"Received: embedding_dim={self.embedding_dim}"
            )
        if isinstance(embedding, SenseEmbedding):
            embedding.check_head(self)

    def _share_senses(self):
        if isinstance(self.embedding, SenseEmbedding):
            self.composition.share(self.embedding.allocation)

    def __call__(self, hidden, *args, **kwargs):
        if self._embedding_is_copy and isinstance(hidden, keras.KerasTensor):
            self.tie_to(find_upstream_embedding(hidden, self.embedding.name))
        return super().__call__(hidden, *args, **kwargs)

    def tie_to(self, embedding):
        """Shares `embedding` in place of the copy that a config made; `None` changes nothing."""
        if embedding is not None and embedding is not self.embedding:
            self._check_embedding(embedding)
            replace_sublayer(self, "embedding", embedding)  # may be built with its copy already
            self._share_senses()
        self._embedding_is_copy = False

    def build(self, hidden_shape):
        num_labels = self.composition.num_labels(self.vocabulary_size)
        if self.embedding is None:
            width = self.embedding_dim or hidden_shape[-1]
            self.label_embeddings = self.add_weight(
                shape=(num_labels, width),
                initializer=self.embeddings_initializer,
                name="label_embeddings",
            )
        else:
            width = self.embedding.output_dim
            if not self.embedding.built:
                self.embedding.build(None)
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(num_labels,), initializer="zeros", name="bias", autocast=False
            )
        else:
            self.bias = None
        if not isinstance(self.embedding, SenseEmbedding):
            self.own_score_parameters = [
                self.add_weight(shape=(num_labels,), initializer=value, name=name, autocast=False)
                for name, value in self.score.parameter_initializers.items()
            ]
        self._hidden_shape = tuple(hidden_shape)
        if not self.composition.built:
            self.composition.build(tuple(hidden_shape), (num_labels, width))
        if not self.label_encoder.built:
            context_shape = self.composition.context_shape(hidden_shape)
            self.label_encoder.build((num_labels, width), context_shape)
        self.built = True

    @property
    def embeddings(self):
        """The variable `[M, d]` that the labels are made from."""
        return self.label_embeddings if self.embedding is None else self.embedding.embeddings

    @property
    def score_parameters(self) -> list:
        """The variables `[M]` of the score, which a tied `SenseEmbedding` shares."""
        if isinstance(self.embedding, SenseEmbedding):
            return self.embedding.score_parameters
        return self.own_score_parameters

    def call(self, hidden, training=None):
        """Log-probabilities `[..., V]` of all words, in float32."""
        log_probs = self.composition.log_probs(*self._scores(hidden, training))
        return ops.reshape(log_probs, (*ops.shape(hidden)[:-1], self.vocabulary_size))

    def _scores(self, hidden, training=False):
        """Scores `[N, K, M]` of all labels, and the contexts' log-priors."""
        contexts, log_priors = self._contexts(hidden, training)  # [N, K, d]
        labels = ops.cast(self._labels(training), self.compute_dtype)
        rows = ops.reshape(contexts, (-1, contexts.shape[-1]))
        # Tensors, not variables: a custom gradient on TensorFlow refuses to touch a variable.
        parameters = tuple(ops.reshape(p, p.shape) for p in self.score_parameters)
        scores = self.score.scores(ops.cast(rows, self.compute_dtype), labels, parameters)
        if self.use_bias:
            scores = scores + self.bias
        if self.logit_soft_cap is not None:
            scores = self.logit_soft_cap * ops.tanh(scores / self.logit_soft_cap)
        return ops.reshape(scores, (-1, contexts.shape[1], labels.shape[0])), log_priors

    def compute_output_spec(self, hidden, training=None):
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        return keras.KerasTensor((*hidden.shape[:-1], self.vocabulary_size), dtype=dtype)

    def log_prob(self, hidden, targets):
        """Log-probabilities of given words, differentiable.

        Args:
            hidden: `[..., d_h]`.
            targets: `[...]` integers in `[0, vocabulary_size)`.

        Returns:
            `[...]`, float32.
        """
        inputs, _, _, valid = self._walk_inputs(hidden, targets, None, training=False)
        losses, *_ = token_losses(inputs, self._options(), None)
        losses = ops.where(valid, losses, ops.full_like(losses, math.nan))
        return -ops.reshape(losses, ops.shape(targets))

    def loss(
        self,
        hidden,
        targets,
        sample_weight=None,
        label_smoothing=0.0,
        reduction="sum_over_batch_size",
        training=True,
    ):
        """Cross-entropy of `targets`, fused: log-probabilities of all words are never built.

        Args:
            hidden: `[..., d_h]`.
            targets: `[...]` integers in `[0, vocabulary_size)`.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape. Tokens of
                weight 0 are not computed at all, and may have any target.
            label_smoothing: Share of a target's probability that is spread over all words. Only
                with one label a word (not with senses or mixtures).
            reduction: As in `keras.losses`: "sum_over_batch_size" (or "mean"),
                "mean_with_sample_weight", "sum" or "none" (losses `[...]`, whose gradients
                recompute the scores).
            training: Whether dropout is on, gradients come with the forward pass, and the use of
                senses is recorded. With `False` the loss alone is computed; gradients stay right
                but cost more.

        Returns:
            A scalar, or `[...]` with `reduction="none"`; float32.

        Raises:
            ValueError: An argument is wrong, or a target out of range. Inside a compiled
                function TensorFlow raises `InvalidArgumentError`; under XLA and on JAX,
                where nothing can be raised, the loss is NaN.
        """
        return self.loss_and_log_prob(
            hidden, targets, sample_weight, label_smoothing, reduction, training
        )[0]

    def loss_and_log_prob(
        self,
        hidden,
        targets,
        sample_weight=None,
        label_smoothing=0.0,
        reduction="sum_over_batch_size",
        training=True,
    ):
        """`loss`, and the log-probabilities `[...]` of the targets (not differentiable, 0 where the
        weight is), for metrics, at no extra cost. Arguments as in `loss`."""
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"`reduction` must be one of {REDUCTIONS}. Received: reduction={reduction!r}"
            )
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                f"`label_smoothing` must be in [0, 1). Received: label_smoothing={label_smoothing}"
            )
        if label_smoothing and not self.composition.one_label_per_word:
            raise ValueError(
                "`label_smoothing` must be 0 where words have several senses or the output is a "
                f"mixture. Received: label_smoothing={label_smoothing}"
            )
        inputs, flat, weights, valid = self._walk_inputs(hidden, targets, sample_weight, training)
        options = self._options(label_smoothing=label_smoothing, z_loss=self.z_loss)
        nan_if_wrong = ops.where(ops.all(valid), 1.0, math.nan)
        if reduction in ("none", None):
            loss, log_probs, posteriors = token_losses(inputs, options, weights)
            loss = ops.reshape(loss, ops.shape(targets))
        else:
            loss, log_probs, posteriors = weighted_loss(inputs, options, weights, training)
            if reduction != "sum":
                by_weight = reduction == "mean_with_sample_weight" and weights is not None
                total = ops.sum(weights) if by_weight else ops.size(targets)
                loss = ops.divide_no_nan(loss, ops.cast(total, loss.dtype)) / num_replicas()
        if training:
            self.composition.record(flat, log_probs, posteriors, weights)
        return loss * ops.cast(nan_if_wrong, loss.dtype), ops.reshape(log_probs, ops.shape(targets))

    def top_k(self, hidden, k: int):
        """The k most probable words.

        Args:
            hidden: `[..., d_h]`.
            k: Number of words.

        Returns:
            Log-probabilities and word indices, both `[..., k]`, the most probable first.
        """
        if not 1 <= k <= self.vocabulary_size:
            raise ValueError(f"`k` must be in [1, {self.vocabulary_size}]. Received: k={k}")
        return ops.top_k(self(hidden), k)

    def encoded_labels(self):
        """The output labels `[M, d_j]`, as they are at inference."""
        return self.label_encoder.encode_labels(
            ops.convert_to_tensor(self.embeddings), training=False
        )

    def folded(self) -> "OutputLayer":
        """The same output layer for inference: its label encoder has become a constant.

        Returns:
            A built `OutputLayer` that gives the same probabilities at the cost of weight tying. It
            shares the composition and the hidden side of the label encoder with this layer, and
            nothing else: later training of this layer does not reach it.
        """
        labels = self.encoded_labels()
        head = self._make_folded(
            label_encoder=FoldedLabelEncoder(
                self.label_encoder.hidden_network, dtype=self.dtype_policy
            ),
            embedding_dim=labels.shape[-1],
            use_bias=self.use_bias,
            logit_soft_cap=self.logit_soft_cap,
            z_loss=self.z_loss,
            tile_size=self.tile_size,
            tile_bytes=self.tile_bytes,
            name=self.name,
            trainable=False,
            dtype=self.dtype_policy,
        )
        head.build(self._hidden_shape)
        head.label_embeddings.assign(labels)
        if self.use_bias:
            head.bias.assign(self.bias)
        for variable, value in zip(head.score_parameters, self.score_parameters, strict=True):
            variable.assign(value)
        return head

    def _make_folded(self, **arguments) -> "OutputLayer":
        """The layer that `folded` fills, made with `arguments` and what they leave open."""
        return OutputLayer(
            self.vocabulary_size, score=self.score, composition=self.composition, **arguments
        )

    def _options(self, **options) -> WalkOptions:
        gradient_bytes = 4 * math.prod(self.embeddings.shape)
        return WalkOptions(
            self.score,
            compute_dtype=self.compute_dtype,
            logit_soft_cap=self.logit_soft_cap,
            tile_size=self.tile_size,
            tile_bytes=self.tile_bytes or max(self._least_tile_bytes, 3 * gradient_bytes // 8),
            **options,
        )

    def _contexts(self, hidden, training):
        """`[..., d_h]` to contexts `[N, K, d_j]` and their log-priors."""
        contexts, log_priors = self.composition.contexts(
            ops.convert_to_tensor(hidden), training=training
        )
        return self.label_encoder.encode_hidden(contexts, training=training), log_priors

    def _labels(self, training):
        # Not through `__call__`: its autocast would round a tied float32 table, and its gradient.
        return self.label_encoder.encode_labels(
            ops.convert_to_tensor(self.embeddings), training=training
        )

    def _walk_inputs(self, hidden, targets, weights, training):
        """The walk's inputs, targets `[N]`, weights `[N]` or None, which targets are in range."""
        if not self.built:
            self.build(hidden.shape)
        targets = ops.convert_to_tensor(targets)
        if tuple(targets.shape) != tuple(hidden.shape[:-1]):
            raise ValueError(
                "`targets` must have the shape of `hidden` without its last axis. Received: "
                f"targets of shape {tuple(targets.shape)}, hidden of shape {tuple(hidden.shape)}"
            )
        if weights is not None:
            dtype = "float64" if self.compute_dtype == "float64" else "float32"
            weights = ops.convert_to_tensor(weights, dtype=dtype)
            for _ in range(len(targets.shape) - len(weights.shape)):
                weights = ops.expand_dims(weights, -1)
            weights = ops.reshape(ops.broadcast_to(weights, ops.shape(targets)), (-1,))
        flat, valid = check_targets(ops.reshape(targets, (-1,)), self.vocabulary_size, weights)
        contexts, log_priors = self._contexts(hidden, training)
        columns, column_mask = self.composition.columns(flat)
        inputs = WalkInputs(
            contexts,
            log_priors,
            self._labels(training),
            self.bias,
            tuple(self.score_parameters),
            columns,
            column_mask,
        )
        return inputs, flat, weights, valid

    def get_config(self) -> dict:
        def serialize(x):
            return x and keras.saving.serialize_keras_object(x)

        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding": serialize(self.embedding),
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
        }

    @classmethod
    def from_config(cls, config: dict) -> "OutputLayer":
        config = dict(config)
        for name in ("embedding", "label_encoder", "score", "composition"):
            if isinstance(config.get(name), dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        layer = cls(**config)
        layer._embedding_is_copy = layer.embedding is not None
        return layer
