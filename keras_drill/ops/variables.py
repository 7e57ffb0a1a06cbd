"""Creates variables that belong to no layer."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras


def variable_like(variable: keras.Variable, value: Any, **options: Any) -> keras.Variable:
    """Creates a variable with the path of another variable.

    A `keras.distribution` then places both on the same devices.

    Args:
        variable: The variable whose path is used.
        value: Initial value of the new variable.
        **options: Keyword arguments of `keras.Variable`, except `name`.

    Returns:
        The new variable.
    """
    *scopes, name = variable.path.split("/")
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        return keras.Variable(value, name=name, **options)


@contextmanager
def on_one_device() -> Iterator[None]:
    """Creates the variables inside the `with` block without the current `keras.distribution`."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)
