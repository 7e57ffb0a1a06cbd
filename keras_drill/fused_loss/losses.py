"""Differentiable losses and log-probabilities on top of the tile walk."""

from typing import NamedTuple

import keras
from keras import ops

from keras_drill.fused_loss.devices import distributed_walk
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.types import Tensor


class FusedLoss(NamedTuple):
    """A loss, and what it found out of the targets on the way.

    Attributes:
        loss: Differentiable for everything in `WalkInputs` and for the weights.
        log_probs: `[N]`, the targets' log-probabilities. Not differentiable, as is the rest.
        posteriors: `[N, S]`, those over the targets' columns, or `None` where S = 1.
        ranks: `[N]`, how many words are more probable than the target, or `None` if not asked for.
    """

    loss: Tensor
    log_probs: Tensor
    posteriors: Tensor | None
    ranks: Tensor | None


def weighted_loss(inputs: WalkInputs, options: WalkOptions, weights=None, training: bool = True):
    """`sum(weights * losses)`, fused: the matrix of scores is never whole in memory.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        weights: `[N]`, or `None` for 1. Weight 0 skips a token.
        training: Compute the gradients in the forward pass, three matrix products in all. With
            `False` only the loss is computed; its gradients stay right and recompute the scores.

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
    """`weights * losses`, one a token; their gradients recompute the scores.

    Arguments and results are those of `weighted_loss`, without the sum.
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

    `outputs` are those of `FusedLoss`; `backward(upstream of
    the value)` returns the gradients as in `Walk`, and the weights'. Frozen labels are a constant.
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
        # Stopped, so that an eager tape does not record the tiles and keep them alive.
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

        # Of all that it depends on, so that nobody takes its derivative for 0.
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

    # Tensors, not variables: a custom gradient on TensorFlow refuses to touch a variable.
    flat = [ops.reshape(x, (-1, *x.shape[1:])) for x in tensors if x is not None]
    loss, *rest = function(*flat)
    log_probs, *rest = [ops.stop_gradient(x) for x in rest]
    ranks = rest.pop() if options.with_ranks else None
    return FusedLoss(loss, log_probs, rest[0] if rest else None, ranks)


def _refuse_second_order(*args, upstream=None):
    raise NotImplementedError(
        "The fused loss has no gradients of its gradients, because it does not keep the scores. "
        "For second-order gradients give the log-probabilities that the output layer returns, "
        "`head(hidden)`, to keras.losses.SparseCategoricalCrossentropy(from_logits=True)."
    )
