"""Values and gradients on whichever backend runs."""

import keras
import numpy as np


def value_and_gradients(function, variables, *inputs):
    """`function(*inputs)`, its gradients for Keras `variables`, and for each of the `inputs`.

    Returns:
        The value, a list of gradients, and one more gradient per input; all NumPy arrays.
    """
    inputs = [keras.ops.convert_to_tensor(x) for x in inputs]
    if keras.backend.backend() == "jax":
        value, gradients, d_inputs = _jax(function, variables, inputs)
    else:
        value, gradients, d_inputs = _tensorflow(function, variables, inputs)
    return np.asarray(value), [np.asarray(g) for g in gradients], *map(np.asarray, d_inputs)


def _tensorflow(function, variables, inputs):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = function(*inputs)
    wanted = [v.value for v in variables] + inputs
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(value, wanted)]
    return value, gradients[: len(variables)], gradients[len(variables) :]


def _jax(function, variables, inputs):
    import jax

    def stateless(values, inputs):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function(*inputs)

    values = [v.value for v in variables]
    value, (gradients, d_inputs) = jax.value_and_grad(stateless, argnums=(0, 1))(values, inputs)
    return value, gradients, d_inputs
