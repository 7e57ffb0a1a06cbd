"""The computations of an output layer: probabilities and losses of words."""

import keras
from keras import ops

from keras_drill.compositions import Composition
from keras_drill.fused_loss.inputs import WalkOptions
from keras_drill.fused_loss.placement import Placement, placement_of
from keras_drill.fused_loss.tiling import CPU_TILE_BYTES, default_tile_bytes
from keras_drill.label_encoders import LabelEncoder
from keras_drill.ops.top_k import top_k
from keras_drill.output_layer import losses
from keras_drill.output_layer.embedding_table import embedding_variable
from keras_drill.output_layer.more_words import with_words
from keras_drill.output_layer.tied_layer import TiedLayer
from keras_drill.scores import Score
from keras_drill.types import Shape, Tensor, Tensors


class WordProbabilities(TiedLayer):
    """Base class of `OutputLayer` with the computations of a built layer."""

    vocabulary_size: int
    label_encoder: LabelEncoder
    score: Score
    composition: Composition
    use_bias: bool
    logit_soft_cap: float | None
    z_loss: float
    tile_size: int | None
    tile_bytes: int | None
    bias: Tensor | None
    label_embeddings: keras.Variable
    _width: int
    _num_rows: int
    _hidden_shape: Shape | None
    _least_tile_bytes = CPU_TILE_BYTES

    @property
    def hidden_shape(self) -> Shape:
        """Shape of the hidden states that the layer was built for.

        Raises:
            ValueError: The layer is not built yet.
        """
        if self._hidden_shape is None:
            raise ValueError(
                "The layer must be built first, by a call or by `build`. "
                f"Received: {self!r}, which is not built"
            )
        return self._hidden_shape

    def log_prob(
        self, hidden: Tensor, targets: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Computes log-probabilities of given words, without dropout. The result is differentiable.

        Args:
            hidden: Hidden states `[..., d_h]`.
            targets: `[...]` integers in `[0, vocabulary_size)`.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape, by which the
                log-probabilities are multiplied. Tokens of weight 0 are skipped, and may have any
                target.

        Returns:
            `[...]`, float32.
        """
        return losses.log_prob(self, hidden, targets, sample_weight)

    def loss(
        self,
        hidden: Tensor,
        targets: Tensor,
        sample_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        reduction: str | None = "sum_over_batch_size",
        training: bool = True,
    ) -> Tensor:
        """Computes the fused cross-entropy of `targets`, without log-probabilities of all words.

        The mean is already divided by the number of replicas of `tf.distribute`. So sum the losses
        and gradients of the replicas without dividing them again.

        Args:
            hidden: Hidden states `[..., d_h]`.
            targets: `[...]` integers in `[0, vocabulary_size)`.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape. Tokens of
                weight 0 are skipped, and may have any target.
            label_smoothing: Share of a target's probability that is distributed over all words.
            reduction: As in `keras.losses`: "sum_over_batch_size" (or "mean"),
                "mean_with_sample_weight", "sum" or "none" (losses `[...]`, whose gradients
                recompute the scores).
            training: Whether dropout is on, gradients are computed in the forward pass, and the use
                of senses is recorded. With `False`, only the loss is computed, and its gradients
                are correct but cost more.

        Returns:
            A scalar, or `[...]` with `reduction="none"`; float32.

        Raises:
            ValueError: An argument is invalid, or a target is out of range. Inside a compiled
                function, TensorFlow raises `InvalidArgumentError`. XLA and JAX cannot raise errors,
                so the loss is NaN.
        """
        return self.loss_and_log_prob(
            hidden, targets, sample_weight, label_smoothing, reduction, training
        )[0]

    def loss_and_log_prob(
        self,
        hidden: Tensor,
        targets: Tensor,
        sample_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        reduction: str | None = "sum_over_batch_size",
        training: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Computes `loss` and the targets' log-probabilities, for metrics, at no extra cost.

        The arguments are those of `loss`. With `training=True`, dropout changes both results. Use
        `log_prob` or `training=False` for evaluation.

        Returns:
            The loss; and the log-probabilities `[...]` of the targets, without gradients. They are
            0 for tokens of weight 0.
        """
        return losses.loss_and_statistics(
            self, hidden, targets, sample_weight, label_smoothing, reduction, training
        )[:2]

    def loss_log_prob_and_rank(
        self,
        hidden: Tensor,
        targets: Tensor,
        sample_weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        reduction: str | None = "sum_over_batch_size",
        training: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Computes `loss_and_log_prob` and the targets' ranks, for accuracy metrics.

        The rank of a target is the number of words that are more probable. Among equally probable
        words, the word with the lowest index ranks first, as in an argmax. The arguments are those
        of `loss`.

        Returns:
            The loss; the log-probabilities `[...]` of the targets; and their ranks, `[...]`
            integers, 0 for tokens of weight 0.
        """
        return losses.loss_and_statistics(
            self, hidden, targets, sample_weight, label_smoothing, reduction, training, True
        )

    def top_k(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Returns the k most probable words.

        Args:
            hidden: Hidden states `[..., d_h]`.
            k: Number of words, at most `vocabulary_size`.

        Returns:
            Log-probabilities and word indices, both `[..., k]`, the most probable first.

        Raises:
            ValueError: `k` is out of range.
        """
        if not 1 <= k <= self.vocabulary_size:
            raise ValueError(f"`k` must be in [1, {self.vocabulary_size}]. Received: k={k}")
        return top_k(self(hidden), k)

    def encoded_labels(self) -> Tensor:
        """Computes the output labels `[M, d_j]` from the embeddings, without dropout.

        Raises:
            ValueError: The layer is not built.
        """
        if not self.built:
            raise ValueError(
                "The layer must be built before its labels are computed: call it on hidden states, "
                f"or `build((None, width))`. Received: {self.name!r}, which is not built"
            )
        return self.without_padding(self._labels(training=False))

    def with_words(
        self,
        descriptions: Tensor,
        bias: Tensor | None = None,
        embedding: keras.layers.Embedding | None = None,
    ) -> "WordProbabilities":
        """Returns a copy of the output layer with additional words that did not occur in training.

        Labels of the new words are computed from their descriptions alone. All other words keep
        their scores. The label encoder must be a `keras_drill.DescriptionLabelEncoder`. Its
        `embedding_dropout` trains the encoder for words without embeddings.
        `keras_drill.LanguageModel.with_words` extends a whole model.

        Args:
            descriptions: `[n, ...]`, descriptions of n words, which follow the existing words.
            bias: Biases of the new words, `[n]` or one number, for example those of equally
                frequent words. `None` is the mean of all biases.
            embedding: If this layer shares an embedding, a copy of the embedding with n more rows.
                The additional rows are only used for input: no label is computed from them.

        Returns:
            A built output layer that shares no variables with this one. If words have several
            senses, a new word gets the smallest allowed number of senses.

        Raises:
            ValueError: The layer has another label encoder, or an argument does not match.

        Example:

        >>> features = np.eye(5, 3)
        >>> encoder = keras_drill.DescriptionLabelEncoder(features, embedding_dropout=0.3)
        >>> head = keras_drill.OutputLayer(5, label_encoder=encoder)
        >>> head(np.ones((2, 7))).shape
        TensorShape([2, 5])
        >>> head.with_words(np.ones((1, 3)))(np.ones((2, 7))).shape
        TensorShape([2, 6])
        """
        return with_words(self, descriptions, bias, embedding)

    def without_padding(self, rows: Tensor) -> Tensor:
        """Returns the first M rows of a tensor, without padding rows."""
        num_labels = self.composition.num_labels(self.vocabulary_size)
        return rows if rows.shape[0] == num_labels else rows[:num_labels]

    def label_terms(self) -> Tensors:
        """Computes the score's terms of the labels at inference, such as their norms for KerBS.

        Returns:
            A sequence of tensors `[M]`, which is empty for an inner product.
        """
        labels = ops.cast(self.encoded_labels(), self.compute_dtype)
        return self.score.label_terms(labels, self._score_parameters())

    def log_probs(
        self, hidden: Tensor, labels: Tensor, label_terms: Tensors | None = None
    ) -> Tensor:
        """Computes log-probabilities `[..., V]` of all words at inference, from encoded labels.

        Use this method in loops, so that the label encoder runs only once.

        Args:
            hidden: Hidden states `[..., d_h]`.
            labels: Output of `encoded_labels`.
            label_terms: Output of `label_terms`, through which no gradient passes. `None` computes
                the terms.
        """
        return self._log_probs(hidden, labels, training=False, label_terms=label_terms)

    def logits(self, hidden: Tensor, labels: Tensor, label_terms: Tensors | None = None) -> Tensor:
        """Computes logits `[..., V]` of all words at inference. Their log-softmax is `log_probs`.

        Use this method in loops that need log-probabilities of few words. A mixture of softmaxes
        has no logits; see `composition.has_logits`. The arguments are those of `log_probs`.
        """
        hidden = losses.check_hidden(self, hidden)
        scores, _ = self._scores(hidden, labels, label_terms=label_terms)
        return self._of_words(self.composition.logits(scores), hidden)

    def _log_probs(self, hidden, labels, training, label_terms=None):
        hidden = losses.check_hidden(self, hidden)
        scores, log_priors = self._scores(hidden, labels, training, label_terms)
        return self._of_words(self.composition.log_probs(scores, log_priors), hidden)

    def _of_words(self, values, hidden):
        """Reshapes `[N, V]` to `[..., V]`, the shape of the hidden states."""
        return ops.reshape(values, (*ops.shape(hidden)[:-1], self.vocabulary_size))

    def _scores(self, hidden, labels, training=False, label_terms=None):
        """Computes scores `[N, K, M]` of all labels, and the contexts' log-priors."""
        contexts, log_priors = self._contexts(hidden, training)  # [N, K, d]
        labels = ops.cast(self.without_padding(labels), self.compute_dtype)
        rows = ops.cast(ops.reshape(contexts, (-1, contexts.shape[-1])), self.compute_dtype)
        if label_terms is None:
            scores = self.score.scores(rows, labels, self._score_parameters())
        else:
            scores = self.score.scores_of_terms(rows, labels, label_terms)
        if self.use_bias:
            scores = scores + self.without_padding(self.bias)
        if self.logit_soft_cap is not None:
            scores = self.logit_soft_cap * ops.tanh(scores / self.logit_soft_cap)
        return ops.reshape(scores, (-1, contexts.shape[1], labels.shape[0])), log_priors

    def _score_parameters(self):
        # Convert variables to tensors: a custom gradient on TensorFlow does not accept variables.
        return tuple(self.without_padding(ops.reshape(p, p.shape)) for p in self.score_parameters)

    def _contexts(self, hidden, training):
        """Computes contexts `[N, K, d_j]` and their log-priors from `[..., d_h]`."""
        contexts, log_priors = self.composition.contexts(
            ops.convert_to_tensor(hidden), training=training
        )
        return self.label_encoder.encode_hidden(contexts, training=training), log_priors

    def _labels(self, training):
        # Call no `__call__`: its autocast would round a tied float32 table, and the gradient.
        return self.label_encoder.encode_labels(
            ops.convert_to_tensor(self.embeddings),
            training=training,
            words=self.composition.words_of_labels(),
        )

    @property
    def labels_are_frozen(self) -> bool:
        """Whether the fused loss may omit the gradient of the labels.

        This saves a third of the time and most of the memory. The result is true if neither the
        embeddings nor the label encoder are trainable. It is false for scores with parameters,
        whose gradients need the gradient of the labels.
        """
        if self.score.parameter_initializers:
            return False
        table = [self.label_embeddings] if self.embedding is None else self.embedding.variables
        return not any(x.trainable for x in (*table, *self.label_encoder.variables))

    def _options(self, **options) -> WalkOptions:
        placement = self._placement()
        rows = self._num_rows // (1 if placement is None else placement.num_shards)
        gradient_bytes = 0 if self.labels_are_frozen else 4 * rows * self._width
        return WalkOptions(
            self.score,
            compute_dtype=self.compute_dtype,
            logit_soft_cap=self.logit_soft_cap,
            tile_size=self.tile_size,
            tile_bytes=self.tile_bytes
            or default_tile_bytes(gradient_bytes, self._least_tile_bytes),
            labels_are_frozen=self.labels_are_frozen,
            placement=placement,
            **options,
        )

    @property
    def _table(self) -> tuple[keras.Variable, int]:
        """The variable from which labels are computed, and its axis of labels."""
        if self.embedding is None:
            return self.label_embeddings, 0
        return embedding_variable(self.embedding)

    def _placement(self) -> Placement | None:
        """Returns the placement of the labels under a Keras distribution."""
        return placement_of(*self._table, self.composition.num_labels(self.vocabulary_size))
