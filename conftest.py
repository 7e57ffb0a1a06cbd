"""What the examples in docstrings may use without importing it."""

import keras
import numpy as np
import pytest

import keras_drill


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    doctest_namespace.update(keras=keras, keras_drill=keras_drill, np=np)
