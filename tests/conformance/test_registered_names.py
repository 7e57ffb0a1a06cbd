"""Whatever Keras saves of this package it finds again by a name that does not depend on modules."""

import importlib
import inspect

import keras

from tests.conformance.test_defaults import NAMESPACES


def test_classes_with_a_config_are_registered():
    missing = set()
    for namespace in NAMESPACES:
        module = importlib.import_module(f"keras_drill{namespace}")
        for value in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(value) and hasattr(value, "get_config"):
                name = f"keras_drill>{value.__name__}"
                is_found = keras.saving.get_registered_object(name) is value
                if not is_found and not inspect.isabstract(value):
                    missing.add(name)
    assert missing == {"keras_drill>LabelEncoder"}  # a base class, which nobody saves
