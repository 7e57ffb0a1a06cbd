"""State that recurrent layers carry from batch to batch: finding, zeroing, keeping, ignoring it.

Wherever something else is read in the middle of a text (an evaluation, an analysis, a prompt to
continue), the text goes on afterwards as if nothing had happened.
"""

import contextlib
from collections.abc import Iterator

import keras

from keras_drill.ops.private_interfaces import all_layers


def carried_state(layer: keras.Layer) -> list[keras.Variable]:
    """Variables in which `layer` and the layers inside it carry state from batch to batch.

    Those of Keras' own recurrent layers with `stateful=True`, and of any layer or model with a list
    `state_variables`, as the backbones and recurrent layers of this package have. Each once; none
    before they are built.
    """
    found: dict[int, keras.Variable] = {}
    for inner in all_layers(layer):
        variables = getattr(inner, "state_variables", None)
        if variables is None and isinstance(inner, keras.layers.RNN) and inner.stateful:
            variables = keras.tree.flatten(inner.states)
        found.update((id(variable), variable) for variable in variables or ())
    return list(found.values())


def zero_carried_state(layer: keras.Layer) -> None:
    """Sets all state that `layer` carries to zero, on every replica."""
    for variable in carried_state(layer):
        variable.assign(keras.ops.zeros(variable.shape, variable.dtype))


@contextlib.contextmanager
def zero_state(layer: keras.Layer) -> Iterator[None]:
    """Begins a text of its own: the carried state is zero, and it is restored at the end.

    A layer that is built meanwhile is left with zeros.

    Args:
        layer: A layer or model; one that carries no state is left alone.

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
    """Meanwhile layers begin with zeros, of any batch size, and carry nothing from call to call.

    For code that may be traced into a graph, where state that is written would stay written.
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
    """The variable, or under a `tf.distribute` strategy its part on each replica here."""
    return getattr(variable.value, "values", None) or [variable]
