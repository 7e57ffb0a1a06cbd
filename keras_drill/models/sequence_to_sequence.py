import inspect
from typing import Any

import keras
from keras import ops

from keras_drill.models.backbone_inputs import PAIRS_SHAPE, check_source_and_target
from keras_drill.models.fused_loss_model import FusedLossModel
from keras_drill.models.scheduled_sampling import ScheduledSampling
from keras_drill.models.training_step import is_stepping
from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.output_layer import OutputLayer
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class SequenceToSequence(FusedLossModel):
    """Sequence-to-sequence model: an encoder–decoder and an output layer with the fused loss.

    The model predicts each word of a target from the source and the target's words before this
    word. Calling the model and `predict` return the log-probabilities of all V words at each
    position, `[B, T, V]`, for B pairs of a source of S words and a target of T words. Training and
    evaluation work as in `keras_drill.LanguageModel` and do not compute this large tensor. The
    output layer skips positions that the backbone masks, such as the target's padding.

    Shapes:
        inputs: `{"source": [B, S], "target": [B, T]}`, integers. The target begins with a start
            symbol. If the backbone accepts features instead of source words, the source is
            `[B, S, ...]`, of any dtype.
        labels: Integers `[B, T]`, the words to predict, passed to `fit` as `y`: the target without
            its start symbol and with an end symbol.
        sample_weight: `None`, or weights of the labels `[B, T]` or of the pairs `[B]`.
        output: Log-probabilities `[B, T, V]`.

    Args:
        backbone: A `keras.Model` or layer that maps these inputs to hidden states `[B, T, d_h]` of
            any width d_h: `keras_drill.models.Transformer`, `RecurrentEncoderDecoder`, or your own.
            If the backbone is not built yet, the model builds it for integers of any batch size and
            length. A backbone that accepts features must be built first.
        head: The output layer, a `keras_drill.OutputLayer`.
        label_smoothing: Share of a target's probability that is distributed over all words, in
            [0, 1).
        reduction: Reduction of the tokens' losses, as in `keras.losses`: "sum_over_batch_size" (or
            "mean"), "mean_with_sample_weight", "sum", or "none" (or `None`).
        scheduled_sampling: `None`, or a `keras_drill.ScheduledSampling`, which replaces some words
            of the target by the model's own predictions during training.
        loss_positions: Share of the target's positions, in (0, 1], that contribute to the loss of
            a training step. Each position is drawn independently with this probability, and the
            output layer computes only the drawn positions. Their losses are divided by
            `loss_positions`, so that the loss and its gradients are unbiased. "one" draws exactly
            one position of each example, among the n positions with a nonzero weight, and
            multiplies the loss at this position by n.
        seed: Integer seed for drawing these positions, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.Model`.

    Raises:
        ValueError: An argument is out of range. Calls raise the error if "source" or "target" is
            missing or ragged, or if words are not integers.

    Example:

    >>> backbone = keras_drill.models.RecurrentEncoderDecoder(31, 6, units=7)
    >>> head = keras_drill.TiedOutput(31, backbone.embedding)
    >>> model = keras_drill.SequenceToSequence(backbone, head, label_smoothing=0.1)
    >>> model.compile("adam", metrics=[keras_drill.metrics.Perplexity()])
    >>> labels = np.array([[7, 5, 9, 2]])
    >>> inputs = {"source": np.array([[9, 5, 7]]), "target": np.array([[1, 7, 5, 9]])}
    >>> history = model.fit(inputs, labels, verbose=0)
    >>> search = keras_drill.decoding.BeamSearch(num_beams=2)
    >>> beams = search(
    ...     keras_drill.decoding.LanguageModelStep(model),
    ...     tokens=np.array([[1, 0, 0, 0]]),
    ...     lengths=np.array([1]),
    ...     inputs={"source": inputs["source"]},
    ...     end_token=2,
    ... )
    >>> tuple(beams.tokens.shape)
    (1, 2, 4)
    """

    def __init__(
        self,
        backbone: keras.Model,
        head: OutputLayer,
        label_smoothing: float = 0.0,
        reduction: str | None = "sum_over_batch_size",
        scheduled_sampling: ScheduledSampling | None = None,
        loss_positions: float | str = 1.0,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(backbone, head, label_smoothing, reduction, **kwargs)
        if scheduled_sampling is not None and not isinstance(scheduled_sampling, ScheduledSampling):
            raise ValueError(
                "`scheduled_sampling` must be a keras_drill.ScheduledSampling or None. "
                f"Received: scheduled_sampling={scheduled_sampling!r}"
            )
        is_share = isinstance(loss_positions, int | float) and 0 < loss_positions <= 1
        if not is_share and loss_positions != "one":
            raise ValueError(
                '`loss_positions` must be in (0, 1], or "one". '
                f"Received: loss_positions={loss_positions!r}"
            )
        self.scheduled_sampling = scheduled_sampling
        self.loss_positions = loss_positions
        self.seed = seed
        self.seed_generator = None if loss_positions == 1 else SeedGenerator(seed)
        self.build_early(PAIRS_SHAPE)

    def run_backbone(self, inputs: Any, training: bool | None) -> Any:
        check_source_and_target(inputs)
        if self.scheduled_sampling is None or not training or not is_stepping(self):
            return super().run_backbone(inputs, training)
        own_words = self.scheduled_sampling.begin(self, inputs["target"])
        if "own_words" in inspect.signature(self.backbone.call).parameters:
            return self.backbone(inputs, training=True, own_words=own_words)
        return self.backbone(
            {**inputs, "target": own_words.sample_in_parallel(inputs)}, training=True
        )

    def choose_positions(self, weights: Tensor | None, targets: Tensor) -> Tensor | None:
        if self.seed_generator is None:
            return weights
        uniforms = keras.random.uniform(ops.shape(targets), seed=self.seed_generator)
        if self.loss_positions == "one":
            counted = ops.ones_like(uniforms)
            if weights is not None:
                counted = ops.cast(ops.not_equal(weights, 0), uniforms.dtype)
            # Uniform numbers may be 0, but not -1.
            place = ops.argmax(ops.where(counted > 0, uniforms, -ops.ones_like(uniforms)), axis=1)
            chosen = ops.one_hot(place, ops.shape(targets)[1], dtype=uniforms.dtype)
            chosen = chosen * ops.sum(counted, axis=1, keepdims=True)
        else:
            share = float(self.loss_positions)
            chosen = ops.cast(uniforms < share, "float32") / share
        return chosen if weights is None else weights * ops.cast(chosen, weights.dtype)

    def get_config(self) -> dict:
        sampling = self.scheduled_sampling
        return {
            **super().get_config(),
            "scheduled_sampling": sampling and keras.saving.serialize_keras_object(sampling),
            "loss_positions": self.loss_positions,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict) -> "SequenceToSequence":
        sampling = config.get("scheduled_sampling")
        if isinstance(sampling, dict):
            sampling = keras.saving.deserialize_keras_object(sampling)
        return super().from_config({**config, "scheduled_sampling": sampling})
