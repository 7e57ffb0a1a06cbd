"""What the examples in docstrings may use without importing it, and how much tests leave behind."""

import gc

import keras
import numpy as np
import pytest

import keras_drill

# What imports made stays: the collections below need not look at it again.
gc.collect()
gc.freeze()


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    doctest_namespace.update(keras=keras, keras_drill=keras_drill, np=np)


@pytest.fixture(autouse=True, scope="module")
def cleared_session():
    """Lets go of a module's models and traced graphs, which hold each other in circles."""
    yield
    keras.backend.clear_session()
