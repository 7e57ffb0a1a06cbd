from contextlib import contextmanager
from contextvars import ContextVar

import keras
from keras import ops
from keras.src.backend import get_keras_mask  # JAX keeps masks beside its tracers, not on them

from keras_drill.ops.shared_embedding import find_embedding
from keras_drill.output_layer import OutputLayer

# The model whose train or test step is being traced: replicas are traced in threads of their own.
_stepping = ContextVar("stepping", default=None)


@keras.saving.register_keras_serializable(package="keras_drill")
class LanguageModel(keras.Model):
    """A backbone and an output layer, trained with the fused loss.

    Called or asked to `predict`, it gives log-probabilities of all words. In `fit`, `evaluate`,
    `train_on_batch` and `test_on_batch` that matrix never exists: the output layer's fused loss
    takes the backbone's hidden states, and metrics get the log-probability of each target.

    Shapes:
        tokens: whatever the backbone takes, `[B, T]` as a rule.
        targets, sample_weight: `[B, T]`.
        output: log-probabilities `[B, T, V]`.

    Args:
        backbone: A `keras.Model` or layer that maps tokens to hidden states `[B, T, d_h]`. Losses
            that it adds (`add_loss`) are added to the cross-entropy.
        head: A `keras_drill.OutputLayer`.
        label_smoothing: Share of a target's probability that is spread over all words.
        reduction: As in `keras_drill.OutputLayer.loss`.
        **kwargs: Keyword arguments of `keras.Model`.

    Example:

    >>> embedding = keras.layers.Embedding(101, 13)
    >>> backbone = keras.Sequential([embedding, keras.layers.LSTM(13, return_sequences=True)])
    >>> head = keras_drill.OutputLayer(101, embedding=embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> model.compile("adam", metrics=[keras_drill.metrics.Perplexity()])
    >>> tokens = np.arange(21).reshape(3, 7)
    >>> history = model.fit(tokens, tokens + 1, verbose=0)
    >>> sorted(history.history)
    ['loss', 'perplexity']
    >>> model.predict(tokens, verbose=0).shape
    (3, 7, 101)
    """

    def __init__(
        self, backbone, head, label_smoothing=0.0, reduction="sum_over_batch_size", **kwargs
    ):
        super().__init__(**kwargs)
        if not isinstance(head, OutputLayer):
            raise ValueError(f"`head` must be a keras_drill.OutputLayer. Received: head={head!r}")
        self.backbone = backbone
        self.head = head
        self.label_smoothing = label_smoothing
        self.reduction = reduction

    def build(self, tokens_shape):
        """Builds backbone and head for tokens of a shape (or a structure of shapes)."""
        tokens = keras.tree.map_shape_structure(
            lambda shape: keras.Input(batch_shape=shape, dtype="int32"), tokens_shape
        )
        self.head(self.backbone(tokens))
        self.built = True

    def call(self, tokens, training=None):
        hidden = self.backbone(tokens, training=training)
        if _stepping.get() is self:
            return {"hidden": hidden, "mask": get_keras_mask(hidden)}
        return self.head(hidden, training=training)

    def compile(self, optimizer="rmsprop", metrics=None, weighted_metrics=None, **kwargs):
        """Configures training; see `keras.Model.compile`.

        Args:
            optimizer: Name or instance.
            metrics: Metrics whose `y_pred` is the log-probability `[B, T]` of each target. They
                count tokens by their sample weight, so that padding does not.
            weighted_metrics: The same.
            **kwargs: Other arguments of `keras.Model.compile`, but for `loss`.

        Raises:
            ValueError: `loss` is given.
        """
        if kwargs.pop("loss", None) is not None:
            raise ValueError(
                "A LanguageModel computes its own loss, the cross-entropy of its output layer. "
                "Received: `loss`"
            )
        weighted_metrics = [*(metrics or []), *(weighted_metrics or [])] or None
        super().compile(optimizer=optimizer, weighted_metrics=weighted_metrics, **kwargs)

    def compile_from_config(self, config: dict):
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def train_step(self, *args):
        with self._step():
            return super().train_step(*args)

    def test_step(self, *args):
        with self._step():
            return super().test_step(*args)

    @contextmanager
    def _step(self):
        """Makes `call` return hidden states, for the fused loss."""
        token = _stepping.set(self)
        try:
            yield
        finally:
            _stepping.reset(token)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Cross-entropy of `y` plus the losses that layers added, and an update of the metrics.

        Args:
            x: Tokens; not used.
            y: Targets `[B, T]`.
            y_pred: `{"hidden": hidden, "mask": mask}`, or log-probabilities `[B, T, V]`.
            sample_weight: Weights of the tokens.
            training: Whether gradients will be asked for.
        """
        if isinstance(y_pred, dict):
            hidden = y_pred["hidden"]
            mask = y_pred["mask"]
            weights = sample_weight if mask is None else self._masked(mask, sample_weight)
            loss, log_probs = self.head.loss_and_log_prob(
                hidden, y, weights, self.label_smoothing, self.reduction, training
            )
            super().compute_metrics(x, y, log_probs, weights)
        else:
            cross_entropy = keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction=self.reduction
            )
            loss = cross_entropy(y, y_pred, sample_weight)
        for extra in self.losses:
            loss = loss + ops.cast(extra, loss.dtype)
        return loss

    def _masked(self, mask, sample_weight):
        """Weights `[B, T]` that leave out masked tokens, as Keras' own losses do."""
        weights = ops.cast(mask, "float32")
        if self.reduction in ("sum_over_batch_size", "mean"):  # the mean is over unmasked tokens
            size = ops.cast(ops.size(weights), weights.dtype)
            weights = weights * ops.divide_no_nan(size, ops.sum(weights))
        if sample_weight is None:
            return weights
        sample_weight = ops.cast(sample_weight, weights.dtype)
        for _ in range(len(weights.shape) - len(sample_weight.shape)):
            sample_weight = ops.expand_dims(sample_weight, -1)
        return weights * sample_weight

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        if isinstance(y_pred, dict):  # `compute_loss` had the log-probabilities and updated them
            return self.get_metrics_result()
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def get_config(self) -> dict:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.saving.serialize_keras_object(self.dtype_policy),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "head": keras.saving.serialize_keras_object(self.head),
            "label_smoothing": self.label_smoothing,
            "reduction": self.reduction,
        }

    @classmethod
    def from_config(cls, config: dict) -> "LanguageModel":
        config = dict(config)
        backbone = keras.saving.deserialize_keras_object(config.pop("backbone"))
        head = keras.saving.deserialize_keras_object(config.pop("head"))
        if head.embedding is not None:
            head.tie_to(find_embedding(backbone, head.embedding.name))
        return cls(backbone, head, **config)
