"""Shared implementation of the public loss functions: checks, losses of tokens, reduction."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.losses import token_losses, weighted_loss
from keras_drill.fused_loss.placement import Placement, check_split_alike, placement_of
from keras_drill.fused_loss.tiling import default_tile_bytes
from keras_drill.ops.check_sizes import check_sizes
from keras_drill.ops.check_targets import check_targets
from keras_drill.ops.token_weights import at_least_one_token, token_weights, unflatten
from keras_drill.scores.inner_product import InnerProduct
from keras_drill.types import Tensor


def linear_loss(
    hidden: Tensor,
    labels: Tensor,
    targets: Tensor | None,
    bias: Tensor | None,
    *,
    sample_weight: Tensor | None,
    ignore_index: int | None,
    reduction: str,
    label_gradient: bool | None,
    training: bool,
    tile_bytes: int | None,
    logit_soft_cap: float | None,
    teacher: Any = None,
    **options: Any,
) -> Tensor:
    """Implements `linear_cross_entropy` and the divergences from a teacher.

    Args:
        targets: `None` if only the teacher contributes to the loss.
        teacher: `None`, or a function that takes the token weights `[N]` or `None` and returns a
            pair: the teacher as in `WalkInputs`, and whether the teacher is valid. The loss is NaN
            if the teacher is not valid.
        **options: Fields of `WalkOptions`.
        hidden, labels, bias, sample_weight, ignore_index, reduction, label_gradient, training,
            tile_bytes, logit_soft_cap: As in `linear_cross_entropy`.
    """
    if label_gradient is None:
        label_gradient = not isinstance(labels, keras.Variable) or labels.trainable
    placement = _placement(labels, bias)
    hidden, labels = ops.convert_to_tensor(hidden), ops.convert_to_tensor(labels)
    check_linear(hidden, labels, bias, logit_soft_cap)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f'`reduction` must be "mean", "sum" or "none". Received: reduction={reduction!r}'
        )
    compute_dtype = keras.backend.standardize_dtype(hidden.dtype)
    accumulator = "float64" if compute_dtype == "float64" else "float32"
    if targets is None:
        targets = ops.zeros(ops.shape(hidden)[:-1], "int32")
    targets = check_leading_axes("targets", ops.convert_to_tensor(targets), hidden)
    shape, weights = ops.shape(targets), None
    if sample_weight is not None:
        weights = token_weights(sample_weight, targets, accumulator)
    if ignore_index is not None:
        counted = ops.cast(targets != ignore_index, accumulator)
        weights = counted if weights is None else ops.where(counted > 0, weights, 0.0 * counted)
    total = ops.cast(ops.size(targets), accumulator) if weights is None else ops.sum(weights)
    hidden, flat, weights = at_least_one_token(hidden, targets, weights, accumulator)
    flat, valid = check_targets(flat, labels.shape[0], weights)
    taught, taught_valid = (None, True) if teacher is None else teacher(weights)
    inputs = WalkInputs(
        contexts=ops.reshape(hidden, (-1, 1, labels.shape[1])),
        log_priors=None,
        labels=labels,
        bias=None if bias is None else ops.convert_to_tensor(bias),
        score_parameters=(),
        columns=flat[:, None],
        teacher=taught,
    )
    rows = labels.shape[0] // (1 if placement is None else placement.num_shards)
    gradient_bytes = 4 * rows * labels.shape[1] if label_gradient else 0
    walk_options = WalkOptions(
        InnerProduct(),
        compute_dtype=compute_dtype,
        logit_soft_cap=logit_soft_cap,
        tile_bytes=tile_bytes or default_tile_bytes(gradient_bytes),
        labels_are_frozen=not label_gradient,
        placement=placement,
        **options,
    )
    if reduction == "none":
        loss = unflatten(token_losses(inputs, walk_options, weights).loss, shape)
    else:
        loss = weighted_loss(inputs, walk_options, weights, training).loss
    if reduction == "mean":
        loss = ops.divide_no_nan(loss, ops.cast(total, loss.dtype))
    is_valid = ops.logical_and(ops.all(valid), taught_valid)
    return loss * ops.cast(ops.where(is_valid, 1.0, math.nan), loss.dtype)


def _placement(labels, bias) -> Placement | None:
    """Returns the placement of a variable's rows under a Keras distribution; `None` for tensors."""
    if not isinstance(labels, keras.Variable):
        return None
    check_split_alike(labels, 0, [bias if isinstance(bias, keras.Variable) else None])
    return placement_of(labels, 0, labels.shape[0])


def check_linear(
    hidden: Tensor,
    labels: Tensor,
    bias: Tensor | None,
    logit_soft_cap: float | None,
    prefix: str = "",
) -> None:
    """Raises `ValueError` if the tensors of a linear output layer do not fit.

    Args:
        hidden, labels, bias, logit_soft_cap: As in `linear_cross_entropy`.
        prefix: Prefix of the arguments' names.
    """
    if len(labels.shape) != 2 or None in tuple(labels.shape):
        raise ValueError(
            f"`{prefix}labels` must be a matrix with one row for each label, and of static shape. "
            f"Received: {prefix}labels of shape {tuple(labels.shape)}"
        )
    for name, x in (("hidden", hidden), ("labels", labels)):
        if not keras.backend.is_float_dtype(keras.backend.standardize_dtype(x.dtype)):
            raise ValueError(f"`{prefix}{name}` must hold floats. Received: dtype {x.dtype}")
    if not hidden.shape or hidden.shape[-1] != labels.shape[1]:
        raise ValueError(
            f"`{prefix}hidden` must be [..., {labels.shape[1]}], as wide as `{prefix}labels`. "
            f"Received: {prefix}hidden of shape {tuple(hidden.shape)}, {prefix}labels of "
            f"{tuple(labels.shape)}"
        )
    if bias is not None and tuple(bias.shape) != (labels.shape[0],):
        raise ValueError(
            f"`{prefix}bias` must be [{labels.shape[0]}], one for each label. "
            f"Received: {prefix}bias of shape {tuple(bias.shape)}"
        )
    if logit_soft_cap is not None and not logit_soft_cap > 0:
        raise ValueError(
            f"`{prefix}logit_soft_cap` must be positive. "
            f"Received: {prefix}logit_soft_cap={logit_soft_cap!r}"
        )


def check_leading_axes(
    name: str, x: Tensor, hidden: Tensor, last: Sequence[int | None] = ()
) -> Tensor:
    """Checks that the shape of a tensor is that of `hidden` without the last axis, plus `last`.

    Raises:
        ValueError: The shape is different.
    """
    ending = f", and then {list(last)}" if last else ""
    message = f"`{name}` must have the shape of `hidden` without its last axis{ending}."
    expected = (*hidden.shape[:-1], *last)
    pairs = zip(x.shape, expected, strict=False)
    if len(x.shape) != len(expected) or any(a != b and None not in (a, b) for a, b in pairs):
        raise ValueError(
            f"{message} Received: {name} of shape {tuple(x.shape)}, hidden of shape "
            f"{tuple(hidden.shape)}"
        )
    return check_sizes(x, (*ops.shape(hidden)[:-1], *last), message)
