"""Functions to find, zero, restore and ignore the state that recurrent layers carry.

A stateful model may have to read another text in the middle of a text, for example for an
evaluation. The state is restored afterwards, so the results for the first text do not change.
"""

import contextlib
from collections.abc import Iterator

import keras

from keras_drill.ops.private_interfaces import all_layers


def carried_state(layer: keras.Layer) -> list[keras.Variable]:
    """Returns the variables in which a layer carries state from batch to batch.

    The function searches `layer` and all layers inside. It finds the states of Keras' recurrent
    layers with `stateful=True`. It also finds the variables in a list `state_variables`, which
    the backbones and recurrent layers of this package have. A layer that is not built has no such
    variables.

    Returns:
        A list that contains each variable once.
    """
    found: dict[int, keras.Variable] = {}
    for inner in all_layers(layer):
        variables = getattr(inner, "state_variables", None)
        if variables is None and isinstance(inner, keras.layers.RNN) and inner.stateful:
            variables = keras.tree.flatten(inner.states)
        found.update((id(variable), variable) for variable in variables or ())
    return list(found.values())


def zero_carried_state(layer: keras.Layer) -> None:
    """Resets the carried state of `layer` and of all layers inside to zero, on every replica."""
    for variable in carried_state(layer):
        variable.assign(keras.ops.zeros(variable.shape, variable.dtype))


@contextlib.contextmanager
def zero_state(layer: keras.Layer) -> Iterator[None]:
    """Sets the carried state to zero, and restores it at the end of the `with` block.

    A layer that is built inside the block keeps zeros.

    Args:
        layer: A layer or model. A layer without carried state is not changed.

    Example:

    >>> layer = keras.layers.LSTM(3, stateful=True)
    >>> x = keras.ops.ones((2, 5, 7))
    >>> _ = layer(x)
    >>> before = [keras.ops.convert_to_numpy(v) for v in carried_state(layer)]
    >>> with zero_state(layer):
    ...     first = layer(x)
    >>> all((a == b).all() for a, b in zip(before, map(keras.ops.convert_to_numpy, layer.states)))
    True
    """
    saved = {
        id(variable): [keras.ops.convert_to_numpy(value) for value in _on_replicas(variable)]
        for variable in carried_state(layer)
    }
    try:
        zero_carried_state(layer)
        yield
    finally:
        zero_carried_state(layer)
        for variable in carried_state(layer):
            if id(variable) in saved:
                for value, before in zip(_on_replicas(variable), saved[id(variable)], strict=True):
                    value.assign(before)


@contextlib.contextmanager
def without_carried_state(layer: keras.Layer) -> Iterator[None]:
    """Makes stateful layers stateless inside the `with` block, for any batch size.

    Use this function for code that may be traced into a graph. In a graph, `zero_state` could not
    undo a write to the state.
    """
    stateful = [inner for inner in all_layers(layer) if getattr(inner, "stateful", False)]
    try:
        for inner in stateful:
            inner.stateful = False
        yield
    finally:
        for inner in stateful:
            inner.stateful = True


def _on_replicas(variable):
    """Returns a list of the variable, or of its copies on this process's replicas."""
    return getattr(variable.value, "values", None) or [variable]
