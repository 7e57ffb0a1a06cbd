"""Outputs, targets and weights of a model with a fused loss inside its train and test step."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_drill.metrics.token_mean import TokenMean
from keras_drill.ops.check_sizes import check_sizes
from keras_drill.ops.token_weights import rank_is_unknown, token_weights
from keras_drill.types import Tensor

# The model whose train or test step is being traced. Replicas are traced in separate threads.
_stepping = ContextVar("stepping", default=None)


class StepOutput(NamedTuple):
    """Output of a `FusedLossModel` inside its train or test step, for `compute_loss`.

    Attributes:
        log_probs: `None`: a step does not compute log-probabilities of all words.
        hidden: Hidden states `[B, T, d_h]`.
        mask: `[B, T]`, False for ignored tokens, or `None`.
        teacher_hidden: Hidden states `[B, T, d_t]` of a `Distiller`'s teacher, or `None`.
    """

    log_probs: None
    hidden: Tensor
    mask: Tensor | None
    teacher_hidden: Tensor | None = None


class LossTracker(TokenMean):
    """The loss that a `FusedLossModel` reports: the mean over all tokens of all batches."""

    def update_state(self, values: Tensor, sample_weight: Tensor | None = None) -> None:
        """Does nothing: `compute_loss` has already counted the loss that Keras' steps pass."""


def in_step(step: Callable) -> Callable:
    """Decorates a train or test step so that the model returns `StepOutput` during the step."""

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        with stepping(self):
            return step(self, *args, **kwargs)

    return wrapper


@contextmanager
def stepping(model: keras.Model) -> Iterator[None]:
    """Context manager in which calls of `model` return `StepOutput`."""
    token = _stepping.set(model)
    try:
        yield
    finally:
        _stepping.reset(token)


def is_stepping(model: keras.Model) -> bool:
    """Whether `model` is called inside its train or test step."""
    return _stepping.get() is model


def check_targets_are_there(y: Any) -> None:
    """Raises `ValueError` if the targets are not a single tensor."""
    if y is None or isinstance(y, dict):
        raise ValueError(
            "`y` must be the targets, word indices [B, T]: `model.fit(tokens, targets)`, or a "
            f"dataset of pairs. Received: y={y!r}"
        )


_ONE_EACH = "`y` must have one target for each of the tokens that the model reads, [B, T]."


def targets_of(y: Tensor, hidden: Tensor) -> Tensor:
    """Returns targets as integers `[B, T]`.

    Raises:
        ValueError: The number of targets differs from the number of tokens.
    """
    y = ops.convert_to_tensor(y)
    shape = ops.shape(hidden)[:-1]
    if rank_is_unknown(y):
        y = ops.reshape(check_sizes(ops.reshape(y, (-1,)), (ops.prod(shape),), _ONE_EACH), shape)
    elif len(y.shape) == len(hidden.shape) and y.shape[-1] in (1, None):
        y = ops.squeeze(y, -1)
    if len(y.shape) != len(shape):
        raise ValueError(f"{_ONE_EACH} Received: shape {tuple(y.shape)}")
    y = check_sizes(y, shape, _ONE_EACH)
    return ops.cast(y, "int32") if keras.backend.is_float_dtype(y.dtype) else y


def weights_of(y: Tensor, mask: Tensor | None, sample_weight: Tensor | None) -> Tensor | None:
    """Returns weights `[B, T]` of the tokens, 0 for masked tokens; `None` if all are 1."""
    if sample_weight is not None:
        sample_weight = token_weights(sample_weight, y)
    if mask is None:
        return sample_weight
    mask = token_weights(mask, y)
    return mask if sample_weight is None else mask * sample_weight


def num_unmasked(y: Tensor, mask: Tensor | None, dtype: str) -> Tensor:
    """Returns the number of tokens by which Keras' own losses divide their sum."""
    return ops.cast(ops.size(y), dtype) if mask is None else ops.sum(ops.cast(mask, dtype))
