"""The fused loss of an output layer: checks arguments and prepares tensors for `fused_loss`."""

import math

import keras
from keras import ops

from keras_drill.fused_loss.inputs import WalkInputs
from keras_drill.fused_loss.losses import token_losses, weighted_loss
from keras_drill.ops.check_sizes import check_sizes
from keras_drill.ops.check_targets import check_targets
from keras_drill.ops.private_interfaces import keras_mask
from keras_drill.ops.replicas import num_replicas
from keras_drill.ops.token_weights import at_least_one_token, token_weights, unflatten
from keras_drill.types import Shape, Tensor

REDUCTIONS = ("sum_over_batch_size", "mean", "mean_with_sample_weight", "sum", "none", None)


def loss_and_statistics(
    head,
    hidden,
    targets,
    sample_weight,
    label_smoothing,
    reduction,
    training,
    with_ranks=False,
    teacher=None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Computes `OutputLayer.loss`, and the log-probability and rank of every token.

    The rank is `None` if not requested. With a `distillation.HeadTeacher`, the result is the mix of
    the loss and the divergence from the teacher.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"`reduction` must be one of {REDUCTIONS}. Received: reduction={reduction!r}"
        )
    if not 0 <= label_smoothing < 1:
        raise ValueError(
            f"`label_smoothing` must be in [0, 1). Received: label_smoothing={label_smoothing}"
        )
    hidden, targets, weights = check_tokens(head, hidden, targets, sample_weight)
    shape = ops.shape(targets)
    inputs, flat, flat_weights, valid = walk_inputs(head, hidden, targets, weights, training)
    if label_smoothing or with_ranks:
        inputs = inputs._replace(word_labels=head.composition.word_labels())
    options = head._options(
        label_smoothing=label_smoothing, z_loss=head.z_loss, with_ranks=with_ranks
    )
    if teacher is not None:
        inputs = inputs._replace(teacher=teacher.walk_inputs())
        options = options._replace(distillation=teacher.distillation())
    nan_if_wrong = ops.where(ops.all(valid), 1.0, math.nan)
    if reduction in ("none", None):
        loss, log_probs, posteriors, ranks = token_losses(inputs, options, flat_weights)
        loss = unflatten(loss, shape)
    else:
        result = weighted_loss(inputs, options, flat_weights, training)
        loss, log_probs, posteriors, ranks = result
        if reduction != "sum":
            by_weight = reduction == "mean_with_sample_weight" and weights is not None
            total = ops.sum(weights) if by_weight else ops.size(targets)
            loss = ops.divide_no_nan(loss, ops.cast(total, loss.dtype)) / num_replicas()
    if training and head.learns_senses:
        head.composition.record(flat, log_probs, posteriors, flat_weights)
    loss = loss * ops.cast(nan_if_wrong, loss.dtype)
    if with_ranks:
        ranks = unflatten(ops.cast(ranks, "int32"), shape)
    return loss, unflatten(log_probs, shape), ranks


def log_prob(head, hidden, targets, sample_weight):
    """Implements `OutputLayer.log_prob`."""
    hidden, targets, weights = check_tokens(head, hidden, targets, sample_weight)
    shape = ops.shape(targets)
    inputs, _, weights, valid = walk_inputs(head, hidden, targets, weights, training=False)
    losses, *_ = token_losses(inputs, head._options(), weights)
    losses = ops.where(valid, losses, ops.full_like(losses, math.nan))
    return unflatten(-losses, shape)


def add_fused_loss(head, hidden, targets, sample_weight, label_smoothing, training):
    """Adds the loss to the layer's losses, and returns the log-probabilities of the targets.

    Masked tokens contribute to neither the sum nor the mean. The loss is the mean of one replica,
    since Keras divides added losses by the number of replicas.
    """
    hidden, targets, weights = check_tokens(head, hidden, targets, sample_weight)
    mask, count = keras_mask(hidden), ops.size(targets)
    if mask is not None:
        unmasked = ops.cast(mask, _float_dtype(head))
        weights, count = unmasked if weights is None else unmasked * weights, ops.sum(unmasked)
    loss, log_probs, _ = loss_and_statistics(
        head, hidden, targets, weights, label_smoothing, "sum", training
    )
    head.add_loss(ops.divide_no_nan(loss, ops.cast(count, loss.dtype)))
    return log_probs


def check_hidden(head, hidden):
    """Checks hidden states, builds the layer if necessary, and returns them as a tensor.

    Raises:
        ValueError: The size of the last axis is not known, or differs from earlier calls.
    """
    hidden = ops.convert_to_tensor(hidden)
    if not keras.backend.is_float_dtype(keras.backend.standardize_dtype(hidden.dtype)):
        hidden = ops.cast(hidden, head.compute_dtype)
    hidden_width(hidden.shape, head._hidden_shape)
    if not head.built:
        head.build(hidden.shape)
    return hidden


def hidden_width(shape: Shape, built_shape: Shape | None = None) -> int:
    """Returns the width of hidden states of a shape.

    Raises:
        ValueError: The width is not known, or differs from that of the layer's build shape.
    """
    shape = tuple(shape)
    width = shape[-1] if shape else None
    if width is None:
        raise ValueError(
            "`hidden` must be of shape [..., d_h], where the width d_h is static, not None. "
            f"Received: hidden of shape {shape}"
        )
    if built_shape is not None and width != built_shape[-1]:
        raise ValueError(
            f"`hidden` must be {built_shape[-1]} wide, the width for which this layer was built. "
            f"Received: hidden of shape {shape}"
        )
    return width


def check_tokens(head, hidden, targets, sample_weight) -> tuple:
    """Checks the shapes of a batch of tokens, and builds the layer if necessary.

    Returns:
        Hidden states `[..., d_h]`, targets `[...]`, and weights `[...]` or `None`, as tensors.

    Raises:
        ValueError: The shapes do not match.
    """
    hidden = check_hidden(head, hidden)
    targets = ops.convert_to_tensor(targets)
    if not _may_be_equal(targets.shape, hidden.shape[:-1]):
        raise ValueError(
            "`targets` must have the shape of `hidden` without its last axis. Received: "
            f"targets of shape {tuple(targets.shape)}, hidden of shape {tuple(hidden.shape)}"
        )
    targets = check_sizes(
        targets,
        ops.shape(hidden)[:-1],
        "`targets` must have the shape of `hidden` without its last axis.",
    )
    if sample_weight is None:
        return hidden, targets, None
    weights = ops.convert_to_tensor(sample_weight, dtype=_float_dtype(head))
    ones = (1,) * (len(targets.shape) - len(weights.shape))
    if not _may_be_equal((*weights.shape, *ones), targets.shape, or_one=True):
        raise ValueError(
            "`sample_weight` must have the shape of `targets`, or of their first axes. Received: "
            f"sample_weight of shape {tuple(weights.shape)}, targets of shape "
            f"{tuple(targets.shape)}"
        )
    return hidden, targets, token_weights(weights, targets, _float_dtype(head))


def walk_inputs(head, hidden, targets, weights, training) -> tuple:
    """Prepares the inputs of the fused loss.

    Returns:
        `WalkInputs`, targets `[N]`, weights `[N]` or `None`, and a mask of valid targets.
    """
    hidden, flat, weights = at_least_one_token(hidden, targets, weights, _float_dtype(head))
    flat, valid = check_targets(flat, head.vocabulary_size, weights)
    contexts, log_priors = head._contexts(hidden, training)
    columns, column_mask = head.composition.columns(flat)
    labels, bias, parameters = head._labels(training), head.bias, head.score_parameters
    if head._placement() is None:  # with several devices, `fused_loss` removes padding
        labels = head.without_padding(labels)
        bias = None if bias is None else head.without_padding(bias)
        parameters = [head.without_padding(parameter) for parameter in parameters]
    inputs = WalkInputs(
        contexts,
        log_priors,
        labels,
        bias,
        tuple(parameters),
        columns,
        column_mask,
        flat,
    )
    return inputs, flat, weights, valid


def _may_be_equal(shape, other, or_one: bool = False) -> bool:
    """Returns whether two shapes with some unknown sizes may be equal."""
    return len(shape) == len(other) and all(
        a == b or None in (a, b) or (or_one and a == 1) for a, b in zip(shape, other, strict=True)
    )


def _float_dtype(head) -> str:
    return "float64" if head.compute_dtype == "float64" else "float32"
