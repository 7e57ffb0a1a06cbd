"""Every public function and method says what it takes and what it gives."""

import importlib
import inspect
import pkgutil

import keras
import pytest

import keras_drill

TENSORFLOW_ONLY = ("data", "distribute", "export", "report", "tasks", "training")
NAMESPACES = sorted(
    module.name
    for module in pkgutil.walk_packages(keras_drill.__path__, "keras_drill.")
    if module.ispkg
)


def functions_of(cls):
    """The public functions, methods and properties that a class has from this package."""
    for owner in cls.__mro__:
        if owner.__module__.startswith("keras_drill"):
            for name, value in vars(owner).items():
                value = value.fget if isinstance(value, property) else value
                value = inspect.unwrap(getattr(value, "__func__", value))
                is_public = not name.startswith("_") or name in ("__init__", "__call__")
                if is_public and inspect.isfunction(value):
                    yield f"{owner.__module__}.{owner.__qualname__}.{name}", value


def missing_hints(function) -> list[str]:
    signature = inspect.signature(function)
    missing = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    if signature.return_annotation is signature.empty and function.__name__ != "__init__":
        missing.append("return")
    return missing


@pytest.mark.parametrize("namespace", ["keras_drill", *NAMESPACES])
def test_hints_are_complete(namespace):
    is_tensorflow_only = namespace.split(".")[1:2] and namespace.split(".")[1] in TENSORFLOW_ONLY
    if is_tensorflow_only and keras.backend.backend() != "tensorflow":
        pytest.skip("needs TensorFlow")
    module = importlib.import_module(namespace)
    missing = {}
    for name in getattr(module, "__all__", []):
        value = getattr(module, name)
        if inspect.isclass(value):
            functions = list(functions_of(value))
        else:
            functions = [(name, inspect.unwrap(value))] if inspect.isfunction(value) else []
        missing.update({label: missing_hints(function) for label, function in functions})
    assert not {label: names for label, names in missing.items() if names}
