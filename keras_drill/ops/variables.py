"""Variables made beside those of a model."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import keras


def variable_like(variable: keras.Variable, value: Any, **options: Any) -> keras.Variable:
    """A new variable of another's path, which a distribution of Keras' puts where that one is.

    Args:
        variable: The other.
        value: Its first value.
        **options: Keyword arguments of `keras.Variable`, but for the name.
    """
    *scopes, name = variable.path.split("/")
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        return keras.Variable(value, name=name, **options)


@contextmanager
def on_one_device() -> Iterator[None]:
    """Where variables are made as if there were no distribution of Keras'."""
    distribution = keras.distribution.distribution()
    keras.distribution.set_distribution(None)
    try:
        yield
    finally:
        keras.distribution.set_distribution(distribution)
