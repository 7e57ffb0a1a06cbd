"""A derivative taken inside of a derivative that is written by hand."""

import keras


def pull_back(function, arrays, upstream) -> list:
    """From the derivative for `function(*arrays)`, those for `arrays`.

    For the parts of an `ops.custom_gradient` that need no formula of their own. On TensorFlow it
    must not be called in the forward part, where tapes do not record.

    Args:
        function: Maps tensors to a tensor, without variables: those do not count as arguments.
        arrays: A list of tensors.
        upstream: The derivative, in the shape and dtype of what `function` gives.

    Returns:
        Tensors as `arrays`; zeros for those that the function does not use.

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
