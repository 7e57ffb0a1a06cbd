"""Differentiable losses and log-probabilities, computed by `walk`."""

from typing import NamedTuple

import keras
from keras import ops

from keras_drill.fused_loss.devices import distributed_walk
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.types import Tensor


class FusedLoss(NamedTuple):
    """A loss, with the statistics of the targets that its computation gives.

    Attributes:
        loss: Differentiable with respect to the tensors in `WalkInputs` and to the weights.
        log_probs: `[N]`, log-probabilities of the targets. Only `loss` is differentiable.
        posteriors: `[N, S]`, posteriors over the targets' columns, or `None` if S = 1.
        ranks: `[N]`, number of words that are more probable than the target, or `None` if not
            requested.
    """

    loss: Tensor
    log_probs: Tensor
    posteriors: Tensor | None
    ranks: Tensor | None


def weighted_loss(inputs: WalkInputs, options: WalkOptions, weights=None, training: bool = True):
    """Computes `sum(weights * losses)` without the whole matrix of scores in memory.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        weights: `[N]`, or `None` for 1. Weight 0 skips a token.
        training: Whether to compute the gradients in the forward pass, with three matrix products
            in all. With `False`, the forward pass computes only the loss. Its gradients are still
            correct, but recompute the scores.

    Returns:
        `FusedLoss`.
    """

    without_ranks = options._replace(with_ranks=False)

    def forward(inputs, weights):
        result = distributed_walk(inputs, options, weights, with_gradients=training)

        def backward(upstream):
            more = result if training else distributed_walk(inputs, without_ranks, weights, True)
            gradients = [None if g is None else upstream * g for g in more.gradients]
            return gradients, upstream * result.losses

        losses = result.losses if weights is None else weights * result.losses
        return (ops.sum(losses), result.log_probs, result.posteriors, result.ranks), backward

    return _differentiable(forward, inputs, options, weights)


def token_losses(inputs: WalkInputs, options: WalkOptions, weights=None):
    """Computes `weights * losses` for each token. The gradients recompute the scores.

    Arguments and results are as in `weighted_loss`, but without the sum over tokens.
    """

    without_ranks = options._replace(with_ranks=False)

    def forward(inputs, weights):
        result = distributed_walk(inputs, options, weights)

        def backward(upstream):
            factors = upstream if weights is None else upstream * weights
            gradients = distributed_walk(
                inputs, without_ranks, factors, with_gradients=True
            ).gradients
            return gradients, upstream * result.losses

        losses = result.losses if weights is None else weights * result.losses
        return (losses, result.log_probs, result.posteriors, result.ranks), backward

    return _differentiable(forward, inputs, options, weights)


def _differentiable(forward, inputs: WalkInputs, options: WalkOptions, weights) -> FusedLoss:
    """Runs `forward(inputs, weights) -> (outputs, backward)` through `ops.custom_gradient`.

    `outputs` are the fields of `FusedLoss`. `backward` takes the upstream gradient of the loss and
    returns the gradients as in `Walk` and the gradient of the weights. Frozen labels are constants.
    """
    constant = ops.stop_gradient(inputs.labels) if options.labels_are_frozen else None
    tensors = [
        inputs.contexts,
        inputs.log_priors,
        None if options.labels_are_frozen else inputs.labels,
        inputs.bias,
        *inputs.score_parameters,
        weights,
    ]
    present = [tensor is not None for tensor in tensors]

    @ops.custom_gradient
    def function(*flat):
        # Stop gradients, so that an eager tape does not record the tiles and keep them alive.
        rest = iter([ops.stop_gradient(tensor) for tensor in flat])
        contexts, log_priors, labels, bias, *parameters, weights = [
            next(rest) if is_present else None for is_present in present
        ]
        outputs, backward = forward(
            inputs._replace(
                contexts=contexts,
                log_priors=log_priors,
                labels=constant if labels is None else labels,
                bias=bias,
                score_parameters=tuple(parameters),
            ),
            weights,
        )

        # The error depends on all inputs: a second derivative raises it and is never silently 0.
        @ops.custom_gradient
        def first_order(upstream, *flat):
            gradients, d_weights = backward(ops.stop_gradient(upstream))
            everything = zip([*gradients, d_weights], present, strict=True)
            wanted = [gradient for gradient, is_present in everything if is_present]
            wanted = [ops.cast(g, x.dtype) for g, x in zip(wanted, flat, strict=True)]
            return tuple(wanted), _refuse_second_order

        def gradient(*args, upstream=None):
            return first_order(keras.tree.flatten(args if upstream is None else upstream)[0], *flat)

        return tuple(x for x in outputs if x is not None), gradient

    # Convert variables to tensors: a custom gradient on TensorFlow does not accept variables.
    flat = [ops.reshape(x, (-1, *x.shape[1:])) for x in tensors if x is not None]
    loss, *rest = function(*flat)
    log_probs, *rest = [ops.stop_gradient(x) for x in rest]
    ranks = rest.pop() if options.with_ranks else None
    return FusedLoss(loss, log_probs, rest[0] if rest else None, ranks)


def _refuse_second_order(*args, upstream=None):
    raise NotImplementedError(
        "The fused loss has no second derivatives, because it does not keep the logits. For second "
        "derivatives, apply keras.losses.SparseCategoricalCrossentropy(from_logits=True) to the "
        "log-probabilities that the output layer returns, `head(hidden)`. Received: a gradient of "
        "a gradient of the fused loss"
    )
