"""Differentiable losses and log-probabilities on top of the tile walk."""

import keras
from keras import ops

from keras_drill.ops.tile_walk import WalkInputs, walk
from keras_drill.ops.walk_options import WalkOptions


def weighted_loss(inputs: WalkInputs, options: WalkOptions, weights=None, training: bool = True):
    """`sum(weights * losses)`, fused: the matrix of scores is never whole in memory.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        weights: `[N]`, or `None` for 1. Weight 0 skips a token.
        training: Compute the gradients in the forward pass, three matrix products in all. With
            `False` only the loss is computed; its gradients stay right and recompute the scores.

    Returns:
        The loss, a scalar differentiable for everything in `inputs` and for `weights`; the targets'
        log-probabilities `[N]`, and the posteriors `[N, S]` over the targets' columns (None where
        S = 1), which are not differentiable.
    """

    def forward(inputs, weights):
        result = walk(inputs, options, weights, with_gradients=training)

        def backward(upstream):
            gradients = (result if training else walk(inputs, options, weights, True)).gradients
            return [
                None if g is None else upstream * g for g in gradients
            ], upstream * result.losses

        losses = result.losses if weights is None else weights * result.losses
        return (ops.sum(losses), result.log_probs, result.posteriors), backward

    return _differentiable(forward, inputs, weights)


def token_losses(inputs: WalkInputs, options: WalkOptions, weights=None):
    """`weights * losses`, one a token; their gradients recompute the scores.

    Arguments and results are those of `weighted_loss`, without the sum.
    """

    def forward(inputs, weights):
        result = walk(inputs, options, weights)

        def backward(upstream):
            factors = upstream if weights is None else upstream * weights
            gradients = walk(inputs, options, factors, with_gradients=True).gradients
            return gradients, upstream * result.losses

        losses = result.losses if weights is None else weights * result.losses
        return (losses, result.log_probs, result.posteriors), backward

    return _differentiable(forward, inputs, weights)


def _differentiable(forward, inputs: WalkInputs, weights) -> tuple:
    """Runs `forward(inputs, weights) -> (outputs, backward)` through `ops.custom_gradient`.

    `outputs` are the differentiable value, log-probabilities and posteriors; `backward(upstream of
    the value)` returns the gradients as in `Walk`, and the weights'.
    """
    tensors = [
        inputs.contexts,
        inputs.log_priors,
        inputs.labels,
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
                labels=labels,
                bias=bias,
                score_parameters=tuple(parameters),
            ),
            weights,
        )

        def gradient(*args, upstream=None):
            upstream = keras.tree.flatten(args if upstream is None else upstream)[0]
            gradients, d_weights = backward(upstream)
            everything = zip([*gradients, d_weights], present, strict=True)
            kept = [gradient for gradient, is_present in everything if is_present]
            return tuple(ops.cast(g, x.dtype) for g, x in zip(kept, flat, strict=True))

        return tuple(x for x in outputs if x is not None), gradient

    # Tensors, not variables: a custom gradient on TensorFlow refuses to touch a variable.
    flat = [ops.reshape(x, (-1, *x.shape[1:])) for x in tensors if x is not None]
    value, log_probs, *posteriors = function(*flat)
    posteriors = ops.stop_gradient(posteriors[0]) if posteriors else None
    return value, ops.stop_gradient(log_probs), posteriors
