"""A text is read from a zero state, and a model gets back the state that it had."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def zero_state(backbone) -> Iterator[None]:
    """Sets the carried state of a stateful backbone to zero, and puts it back in the end.

    Args:
        backbone: A backbone. Those without the protocol of `keras_drill.models` have no state to
            look after.
    """
    state = getattr(backbone, "state_variables", [])
    saved = [keras.ops.convert_to_numpy(variable) for variable in state]
    try:
        for variable in state:
            variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
        yield
    finally:
        for variable, value in zip(state, saved, strict=True):
            variable.assign(value)
