"""Derivatives on either backend."""

import keras
import numpy as np


def gradients(function, *arrays, compiled: bool = False) -> list[np.ndarray]:
    """Derivatives of the scalar `function(*arrays)` with respect to each array.

    `compiled` asks for XLA, which JAX always uses.
    """
    if keras.backend.backend() == "jax":
        import jax

        gradient = jax.jit(jax.grad(function, argnums=tuple(range(len(arrays)))))
        return [np.asarray(g) for g in gradient(*arrays)]
    import tensorflow as tf

    @tf.function(jit_compile=compiled)
    def gradient(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        return tape.gradient(value, tensors)

    return [g.numpy() for g in gradient(*[tf.convert_to_tensor(a) for a in arrays])]
