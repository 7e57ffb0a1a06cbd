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


def test_all_that_is_registered_has_the_name_of_the_package():
    for namespace in NAMESPACES:
        importlib.import_module(f"keras_drill{namespace}")
    registered = keras.saving.get_custom_objects().items()
    ours = {name for name, value in registered if value.__module__.startswith("keras_drill.")}
    assert "keras_drill>UnquantizedDense" in ours  # a class that is not public
    assert {name for name in ours if not name.startswith("keras_drill>")} == set()
