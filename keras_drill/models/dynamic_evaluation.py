"""Dynamic evaluation: a language model learns from the text during the evaluation."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_drill.layers.carried_state import carried_state, zero_state
from keras_drill.ops.private_interfaces import trained_variables


class DynamicEvaluation(NamedTuple):
    """Result of `DynamicEvaluator.evaluate`.

    Attributes:
        targets: Int array `[N]`, ordered by batch and row, without tokens of weight 0.
        log_probs: Float32 array `[N]`, the log-probability of each target.
        hidden: Float32 array `[N, d_h]` of the hidden states that predicted the targets, or `None`.
    """

    targets: np.ndarray
    log_probs: np.ndarray
    hidden: np.ndarray | None


class DynamicEvaluator:
    """Evaluates a language model that learns from each segment of a text after predicting it.

    Texts repeat their own words and topics. A segment is a batch of consecutive tokens. Dynamic
    evaluation first predicts a segment, and stores the log-probabilities of the segment's targets.
    After that, the weights w are updated with the gradient g of the segment's mean cross-entropy.
    w_0 are the trained weights; eta is `learning_rate` and lambda is `decay` of the method
    `evaluate`. Without `mean_squares` the update is SGD with a decay towards w_0,

        w <- w - eta * g + lambda * (w_0 - w)

    With `mean_squares`, the mean squares MS of the gradients on training text, the update is the
    RMS rule,

        w <- w - eta * g / (sqrt(MS) + epsilon) + lambda * r * (w_0 - w)
        r = min(sqrt(MS) / mean(sqrt(MS)), 1 / lambda)

    in which the mean in r is over all weights. Dropout and activation regularisation are off.
    Frozen weights do not change.

    The batches must be in order, as those of `keras_drill.data.ContiguousBatches`: each row of a
    batch continues the same row of the previous batch. A single row reads the text from beginning
    to end. With several rows, the model learns from several places at once, which is faster but
    adapts less. The model must carry its state from batch to batch (`stateful=True`);
    `keras_drill.models.with_batch_size` makes a copy of a trained model for another number of rows.

    After the evaluation, the weights and the carried state are restored exactly.

    Args:
        model: A built `keras_drill.LanguageModel` with a recurrent backbone that carries its state.
            The output layer may be of any kind.
        mean_squares: Result of `gradient_mean_squares` for this model, for the RMS rule; `None` for
            SGD.
        epsilon: Number above 0, added to the root of the mean squares; unused without
            `mean_squares`.

    Raises:
        ValueError: The model carries no state, has no trainable weights, or has weights that do not
            match `mean_squares`.

    Example:

    >>> backbone = keras_drill.models.GRULanguageBackbone(31, 5, 7, 1, stateful=True, batch_size=1)
    >>> model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(31, backbone.embedding))
    >>> segment = np.array([[4, 2, 3, 4]]), np.array([[2, 3, 4, 2]])
    >>> evaluator = keras_drill.models.DynamicEvaluator(model)
    >>> log_probs = evaluator.evaluate([segment] * 3, learning_rate=0.5, decay=0.01).log_probs
    >>> bool(log_probs[-4:].mean() > log_probs[:4].mean())
    True

    References:
        - [Krause et al., 2018](https://arxiv.org/abs/1709.07432)
    """

    def __init__(
        self,
        model: Any,
        mean_squares: Sequence[np.ndarray] | None = None,
        epsilon: float = 1e-3,
    ):
        _check_model(model)
        if not epsilon > 0:
            raise ValueError(f"`epsilon` must be above 0. Received: epsilon={epsilon}")
        shapes = [tuple(variable.shape) for variable in model.trainable_variables]
        if mean_squares is not None and [np.shape(one) for one in mean_squares] != shapes:
            raise ValueError(
                "`mean_squares` must have one array for each trainable variable of the model, of "
                "its shape, as `gradient_mean_squares` returns them. "
                f"Received: {len(mean_squares)} arrays for {len(shapes)} variables, of shapes "
                f"{[np.shape(one) for one in mean_squares]} for {shapes}"
            )
        self.model = model
        self.mean_squares = mean_squares
        self.epsilon = epsilon
        self._step = _Step(model, _DynamicUpdate(mean_squares, epsilon))

    def evaluate(
        self,
        batches: Iterable,
        learning_rate: float,
        decay: float = 0.0,
        keep_hidden: bool = False,
    ) -> DynamicEvaluation:
        """Evaluates a text. The model learns from each batch after predicting it.

        The carried state starts at zero.

        Args:
            batches: `tf.data.Dataset`, or anything that iterates over `(tokens, targets)` or
                `(tokens, targets, sample_weight)`, each `[B, T]`. Tokens of weight 0 are read, but
                not evaluated; all other weights count as 1.
            learning_rate: The factor eta of the update.
            decay: The factor lambda of the decay towards the trained weights, in [0, 1].
            keep_hidden: Whether to return hidden states too, for
                `keras_drill.models.add_neural_cache`.

        Raises:
            ValueError: An argument is out of range, or there is no batch.

        Returns:
            An object with the attributes `targets` `[N]` int32, `log_probs` `[N]` float32 (natural
            logarithms) and `hidden` `[N, d]` float32, the hidden states of width d (`None` without
            `keep_hidden`). N is the number of evaluated tokens, which are in the order of the
            batches, and in a batch row by row.
        """
        if not learning_rate >= 0 or not 0 <= decay <= 1:
            raise ValueError(
                "`learning_rate` must not be negative and `decay` must be in [0, 1]. "
                f"Received: learning_rate={learning_rate}, decay={decay}"
            )
        trained = [ops.convert_to_numpy(each) for each in self.model.trainable_variables]
        targets, log_probs, hidden = [], [], []
        try:
            self._step.optimizer.start(trained, learning_rate, decay)
            with zero_state(self.model):
                for batch in batches:
                    its_targets, its_log_probs, its_hidden = self._step.run(batch)
                    targets.append(its_targets)
                    log_probs.append(its_log_probs)
                    if keep_hidden:
                        hidden.append(its_hidden)
        finally:
            for variable, value in zip(self.model.trainable_variables, trained, strict=True):
                variable.assign(value)
        if not targets:
            raise ValueError(f"`batches` must have at least one batch. Received: {batches}")
        return DynamicEvaluation(
            np.concatenate(targets).astype("int32"),
            np.concatenate(log_probs).astype("float32"),
            np.concatenate(hidden).astype("float32") if keep_hidden else None,
        )


def gradient_mean_squares(model: Any, batches: Iterable) -> list[np.ndarray]:
    """Computes the mean squares of gradients on training text, for `DynamicEvaluator`.

    The result is the mean over batches of the squared gradient of the batch's mean cross-entropy,
    without dropout. Pass the result to `DynamicEvaluator` as `mean_squares`. Use batches of the
    same size as in the dynamic evaluation, so that gradients have the same scale. Weights and
    carried state do not change.

    Args:
        model: A built `keras_drill.LanguageModel` with a recurrent backbone of `stateful=True`.
        batches: Training text, a `tf.data.Dataset` or another iterable as in
            `DynamicEvaluator.evaluate`.

    Returns:
        A list with one float32 array for each of `model.trainable_variables`, of the same shape.

    Raises:
        ValueError: The model carries no state or has no trainable weights, or there is no batch
            with targets.
    """
    _check_model(model)
    step = _Step(model, _SquareSums())
    count = 0
    with zero_state(model):
        for batch in batches:
            targets, _, _ = step.run(batch)
            count += len(targets) > 0
    if not count:
        raise ValueError(
            f"`batches` must have at least one batch with targets. Received: {batches}"
        )
    return [ops.convert_to_numpy(sums).astype("float32") / count for sums in step.optimizer.sums]


def _check_model(model) -> None:
    if not getattr(model, "built", False) or not carried_state(model):
        raise ValueError(
            "`model` must be built and carry its state from batch to batch: a language model with "
            "a recurrent backbone of `stateful=True`. A model that reads each window from its "
            "beginning, such as a Transformer, cannot be evaluated dynamically. "
            f"Received: {model!r}, built={getattr(model, 'built', False)}"
        )
    if not model.trainable_variables:
        raise ValueError(f"`model` must have trainable weights. Received: {model!r}, all frozen")


class _Step(keras.Model):
    """Predicts a batch and updates the weights, compiled by Keras on either backend."""

    def __init__(self, model, optimizer):
        super().__init__(name="dynamic_evaluation", dtype=keras.config.floatx())
        self.backbone = model.backbone
        self.head = model.head
        self.built = True
        optimizer.build(self.trainable_variables)
        # XLA would compile once per sequence length; JAX has no other compiler.
        self.compile(optimizer, jit_compile=keras.backend.backend() == "jax")

    def run(self, batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns targets, log-probabilities and hidden states of the tokens with weight."""
        tokens, targets, *weights = keras.tree.map_structure(np.asarray, tuple(batch))
        counted = weights[0] != 0 if weights else np.ones(targets.shape, "bool")
        logs = self.train_on_batch((tokens, targets, counted.astype("float32")), return_dict=True)
        # A single token comes back as a scalar.
        log_probs = np.reshape(logs["log_probs"], targets.shape)
        hidden = np.reshape(logs["hidden"], (*targets.shape, -1))
        return targets[counted], log_probs[counted], hidden[counted]

    def call(self, inputs, training=None):
        tokens, targets, weights = inputs
        hidden = self.backbone(tokens, training=False)
        return hidden, self.head.log_prob(hidden, targets, weights)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        weights, (_, log_probs) = x[2], y_pred
        return ops.divide_no_nan(-ops.sum(log_probs), ops.cast(ops.sum(weights), log_probs.dtype))

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        hidden, log_probs = y_pred
        return {"hidden": ops.cast(hidden, "float32"), "log_probs": log_probs}


class _DynamicUpdate(keras.optimizers.Optimizer):
    """The update of `DynamicEvaluator`: SGD, or the RMS rule with mean squares."""

    def __init__(self, mean_squares, epsilon):
        super().__init__(learning_rate=0.0, name="dynamic_update")
        self.roots = None
        if mean_squares is not None:
            self.roots = [np.sqrt(np.asarray(each, "float32")) for each in mean_squares]
        self.epsilon = epsilon

    def build(self, variables):
        super().build(variables)
        self.decay = self.add_variable((), name="decay")
        self.trained = self.add_optimizer_variables(variables, "trained")
        self.steps: list = []
        self.decays: list = []
        if self.roots is not None:
            total = sum(float(root.sum(dtype="float64")) for root in self.roots)
            mean = total / sum(root.size for root in self.roots) or 1.0  # 1 if all are 0
            self.steps, self.decays = self.add_optimizer_variables(variables, ["step", "decay"])
            for root, step, decay in zip(self.roots, self.steps, self.decays, strict=True):
                step.assign(1 / (root + self.epsilon))
                decay.assign(root / mean)

    def start(self, trained, learning_rate, decay):
        """Stores the weights towards which weights decay, and the parameters."""
        for variable, value in zip(self.trained, trained, strict=True):
            variable.assign(value)
        self.learning_rate = learning_rate
        self.decay.assign(decay)

    def apply(self, grads, trainable_variables=None):
        rate, decay = (ops.convert_to_tensor(each) for each in (self.learning_rate, self.decay))
        for index, (gradient, variable) in enumerate(
            zip(grads, trained_variables(self), strict=True)
        ):
            step = _dense(gradient, variable)
            pull = decay
            if self.steps:
                step = step * self.steps[index]
                pull = ops.minimum(decay * self.decays[index], 1.0)
            # Compute the difference first, so that there is no rounding at the trained weights.
            change = pull * (self.trained[index] - variable) - rate * step
            variable.assign(variable + ops.cast(change, variable.dtype))


class _SquareSums(keras.optimizers.Optimizer):
    """Accumulates squared gradients and leaves the weights unchanged."""

    def __init__(self):
        super().__init__(learning_rate=0.0, name="square_sums")

    def build(self, variables):
        super().build(variables)
        self.sums = self.add_optimizer_variables(variables, "sum")

    def apply(self, grads, trainable_variables=None):
        for gradient, sums in zip(grads, self.sums, strict=True):
            sums.assign(sums + ops.square(_dense(gradient, sums)))


def _dense(gradient, variable):
    """Returns a gradient as a dense tensor: zeros for `None`, repeated rows of a table summed."""
    zeros = ops.zeros(variable.shape, variable.dtype)
    return zeros if gradient is None else zeros + gradient
