"""Automatic differentiation inside a gradient that is written by hand."""

import keras


def pull_back(function, arrays, upstream) -> list:
    """Returns the gradients of the loss for `arrays`, given the gradient for `function(*arrays)`.

    The function is for parts of an `ops.custom_gradient` for which automatic differentiation is
    good enough. On TensorFlow, call it in the backward part only: tapes do not record in the
    forward part.

    Args:
        function: Maps tensors to a tensor. Variables that it reads get no gradient.
        arrays: A list of tensors.
        upstream: The gradient of the loss for `function(*arrays)`, of that shape and dtype.

    Returns:
        A list of gradients with the shapes of `arrays`; zeros for unused arrays.

    Example:

    >>> found = pull_back(lambda x: x * x, [keras.ops.ones((2,))], keras.ops.ones((2,)))
    >>> keras.ops.convert_to_numpy(found[0]).tolist()
    [2.0, 2.0]
    """
    if keras.backend.backend() == "jax":
        import jax

        return list(jax.vjp(function, *arrays)[1](upstream))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(arrays)
        value = function(*arrays)
    return tape.gradient(
        value,
        arrays,
        output_gradients=upstream,
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
