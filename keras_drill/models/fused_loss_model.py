"""Base class of models with a fused loss."""

from typing import Any

import keras
from keras import ops

from keras_drill.metrics.compiled_metrics import compiled_metrics
from keras_drill.metrics.token_accuracy import TokenAccuracy, given_ranks
from keras_drill.models.backbone_inputs import (
    check_hidden,
    dtype_of,
    shape_built_for,
    symbolic_ends,
)
from keras_drill.models.exportable_model import ExportableModel
from keras_drill.models.training_step import (
    LossTracker,
    StepOutput,
    check_targets_are_there,
    in_step,
    is_stepping,
    num_unmasked,
    stepping,
    targets_of,
    weights_of,
)
from keras_drill.ops.private_interfaces import (
    FitsOnWorkers,
    keras_mask,
    loss_tracker,
    replace_loss_tracker,
)
from keras_drill.ops.replicas import sum_over_replicas
from keras_drill.optimizers import merge_repeated_rows
from keras_drill.output_layer import OutputLayer
from keras_drill.output_layer.losses import REDUCTIONS
from keras_drill.output_layer.tying import embeddings_inside, find_original, path_of
from keras_drill.types import Tensor


class FusedLossModel(FitsOnWorkers, ExportableModel):
    """Base class for models with a backbone and an output layer, trained with the fused loss.

    The fused loss computes cross-entropy and gradients without storing the logits of all tokens.
    The subclasses `keras_drill.LanguageModel` and `keras_drill.SequenceToSequence` define inputs
    and outputs.
    """

    def __init__(
        self,
        backbone: keras.Model,
        head: OutputLayer,
        label_smoothing: float = 0.0,
        reduction: str | None = "sum_over_batch_size",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if not isinstance(head, OutputLayer):
            raise ValueError(f"`head` must be a keras_drill.OutputLayer. Received: head={head!r}")
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"`reduction` must be one of {REDUCTIONS}. Received: reduction={reduction!r}"
            )
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                f"`label_smoothing` must be in [0, 1). Received: label_smoothing={label_smoothing}"
            )
        self.backbone = backbone
        self.head = head
        self.label_smoothing = label_smoothing
        self.reduction = reduction
        self._wants_ranks = False

    def build_early(self, inputs_shape: Any = None) -> None:
        """Builds the model for the backbone's input shape, or for `inputs_shape` if there is one.

        Weights can then be counted, loaded and restored before `fit`. If no shape is known, the
        model is not built.
        """
        shape = shape_built_for(self.backbone) or inputs_shape
        if shape is not None:
            self.build(shape)

    def build(self, inputs_shape: Any) -> None:
        """Builds backbone and head for a shape, or a structure of shapes.

        Inputs with up to two axes are assumed to be integers `[B, T]`, and others to be features. A
        functional backbone defines its input dtypes.
        """
        ends = symbolic_ends(self.backbone)
        if ends is not None:
            hidden = ends[1]
        else:
            inputs = keras.tree.map_shape_structure(
                lambda shape: keras.Input(batch_shape=shape, dtype=dtype_of(shape)), inputs_shape
            )
            hidden = self.backbone(inputs)
        self.head(check_hidden(hidden))
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Tensor | StepOutput:
        hidden = check_hidden(self.run_backbone(inputs, training))
        if is_stepping(self):
            return StepOutput(None, hidden, keras_mask(hidden))
        return self.head(hidden, training=training)

    def run_backbone(self, inputs: Any, training: bool | None) -> Tensor:
        """Computes hidden states `[B, T, d_h]`."""
        return self.backbone(inputs, training=training)

    def choose_positions(self, weights: Tensor | None, targets: Tensor) -> Tensor | None:
        """Returns weights `[B, T]` of the tokens of a training step, from the data's weights."""
        return weights

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in ("train_step", "test_step"):
            if name in vars(cls):
                setattr(cls, name, in_step(vars(cls)[name]))

    def compile(
        self,
        optimizer: Any = "rmsprop",
        metrics: Any = None,
        weighted_metrics: Any = None,
        **kwargs: Any,
    ) -> None:
        """Configures training; see `keras.Model.compile`.

        Args:
            optimizer: Name or instance.
            metrics: Metrics whose `y_pred` is the log-probability `[B, T]` of each target. Each
                token has its sample weight, and masked tokens are ignored. "accuracy" and the
                names of Keras' sparse accuracies stand for `keras_drill.metrics.TokenAccuracy`.
            weighted_metrics: More metrics, which are treated like `metrics`.
            **kwargs: Other arguments of `keras.Model.compile`, except `loss`.

        Raises:
            ValueError: `loss` is passed, or a metric of Keras that needs log-probabilities of all
                words.
        """
        if kwargs.pop("loss", None) is not None:
            raise ValueError(
                f"`loss` must be omitted, because a {type(self).__name__} computes its own loss, "
                "the cross-entropy of its output layer. Received: a value of `loss`"
            )
        weighted_metrics = compiled_metrics(metrics, weighted_metrics)
        if weighted_metrics is not None:  # otherwise Keras keeps the previous ones
            self._wants_ranks = any(isinstance(m, TokenAccuracy) for m in weighted_metrics)
        optimizer = merge_repeated_rows(keras.optimizers.get(optimizer))
        super().compile(optimizer=optimizer, weighted_metrics=weighted_metrics, **kwargs)
        replace_loss_tracker(self, LossTracker(name="loss"))

    def compile_from_config(self, config: dict) -> None:
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    @in_step
    def train_step(self, *args: Any) -> Any:
        return super().train_step(*args)

    @in_step
    def test_step(self, *args: Any) -> Any:
        return super().test_step(*args)

    def compute_loss(
        self,
        x: Any = None,
        y: Tensor | None = None,
        y_pred: Tensor | None = None,
        sample_weight: Tensor | None = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the fused loss and updates the metrics, including the reported loss.

        The loss is the cross-entropy of `y` plus the losses that layers added. In your own
        `train_step`, use

            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, sample_weight)

        and at the end `self.get_metrics_result()`. In a loop outside of `train_step`, omit
        `y_pred`: `model.compute_loss(x, y, sample_weight=sample_weight)`.

        Args:
            x: Inputs of the backbone. Required if `y_pred` is `None`.
            y: Targets `[B, T]` or `[B, T, 1]`.
            y_pred: The model's output inside `train_step` or `test_step`, a `StepOutput` with
                hidden states. With `None`, the method runs the backbone.
            sample_weight: Weights of the tokens, `[B, T]` or `[B]`.
            training: Whether gradients will be needed.

        Returns:
            A scalar, or losses `[B, T]` with `reduction="none"`.

        Raises:
            ValueError: `y` is missing, `y_pred` has log-probabilities, or a shape does not match.
        """
        check_targets_are_there(y)
        if y_pred is None:
            with stepping(self):
                y_pred = self(x, training=training)
        if not isinstance(y_pred, StepOutput):
            raise ValueError(
                "`y_pred` must be the model's output inside `train_step` or `test_step`, or None: "
                "the loss does not use log-probabilities of all words. Write "
                "`loss = model.compute_loss(x, y, sample_weight=...)`. "
                f"Received: y_pred={y_pred!r}"
            )
        y = targets_of(y, y_pred.hidden)
        of_data = weights_of(y, y_pred.mask, sample_weight)
        weights = self.choose_positions(of_data, y) if training else of_data
        per_token = self.reduction in ("none", None)
        losses, log_probs, ranks = self._evaluate(
            y_pred,
            y,
            weights,
            self.label_smoothing,
            "none" if per_token else "sum",
            training,
        )
        total = ops.sum(losses)
        # Read the losses before replicas synchronize: a layer has a single list of losses, which
        # the next replica clears.
        added = sum((ops.sum(ops.cast(x, total.dtype)) for x in self.losses), ops.zeros_like(total))
        count = ops.cast(ops.size(y) if weights is None else ops.sum(weights), total.dtype)
        divisor = num_unmasked(y, y_pred.mask, total.dtype)
        if self.reduction == "mean_with_sample_weight" and of_data is not None:
            divisor = ops.cast(ops.sum(of_data), total.dtype)
        size = ops.cast(ops.size(y), total.dtype)
        # Replicas sum their losses, and may have unequal parts of the batch, or no part.
        all_count, all_divided, all_size = ops.unstack(
            sum_over_replicas(ops.stack([ops.cast(count, total.dtype), divisor, size])), 3
        )
        # Shares sum to 1 over the replicas. So losses that are means over tokens sum to the mean
        # over all tokens, and losses of the weights count once. A replica without rows has no mean.
        share = ops.divide_no_nan(size, all_size)
        added = ops.where(share > 0, share * added, ops.zeros_like(added))
        tracker = loss_tracker(self)
        if tracker is not None:
            tracker.add(total + all_count * added, count)
            with given_ranks(ranks):
                super().compute_metrics(x, y, log_probs, weights)
        if per_token:  # in the sum of the losses, the added losses count once
            return losses + ops.divide_no_nan(added, size)
        if self.reduction != "sum":
            total = ops.divide_no_nan(total, all_divided)
        return total + added

    def _evaluate(
        self, output: StepOutput, y, weights, label_smoothing, reduction, training
    ) -> tuple:
        """Computes the head's loss, log-probabilities and, if a metric needs them, ranks."""
        arguments = output.hidden, y, weights, label_smoothing, reduction, training
        if self._wants_ranks:
            return self.head.loss_log_prob_and_rank(*arguments)
        return *self.head.loss_and_log_prob(*arguments), None

    def compute_metrics(
        self, x: Tensor, y: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> dict:
        check_targets_are_there(y)  # on JAX Keras tries the metrics before any loss
        if isinstance(y_pred, StepOutput):  # `compute_loss` had the log-probabilities
            return self.get_metrics_result()
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def fit(self, *args: Any, class_weight: None = None, **kwargs: Any) -> Any:
        """Trains the model; see `keras.Model.fit`.

        Raises:
            ValueError: `class_weight` is passed, for which Keras would treat each sequence as one
                sample.
        """
        _refuse(class_weight)
        return super().fit(*args, **kwargs)

    def train_on_batch(self, *args: Any, class_weight: None = None, **kwargs: Any) -> Any:
        """Trains on one batch, without `class_weight`; see `keras.Model.train_on_batch`."""
        _refuse(class_weight)
        return super().train_on_batch(*args, **kwargs)

    def get_config(self) -> dict:
        embedding_path = path_of(self.head.embedding, embeddings_inside(self.backbone))
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.saving.serialize_keras_object(self.dtype_policy),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "head": keras.saving.serialize_keras_object(self.head),
            "embedding_path": embedding_path,
            "label_smoothing": self.label_smoothing,
            "reduction": self.reduction,
        }

    @classmethod
    def from_config(cls, config: dict) -> "FusedLossModel":
        config = dict(config)
        backbone = keras.saving.deserialize_keras_object(config.pop("backbone"))
        head = keras.saving.deserialize_keras_object(config.pop("head"))
        is_shared = config.get("embedding_path", "unknown") is not None  # unknown in old files
        path = config.pop("embedding_path", None)
        if head.embedding is not None:
            found = embeddings_inside(backbone) if is_shared else []
            head.tie_to(find_original(head.embedding, path, found))
        return cls(backbone, head, **config)


def _refuse(class_weight) -> None:
    if class_weight is not None:
        raise ValueError(
            "`class_weight` must be None: Keras gives whole sequences one weight. Weigh tokens by "
            "their target with `sample_weight=weights[targets]`, where `weights` has one entry for "
            "each word of the vocabulary. "
            f"Received: class_weight={class_weight!r}"
        )
