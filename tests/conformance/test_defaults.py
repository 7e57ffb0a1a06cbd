"""What users get who do not say: the defaults of public constructors, methods and functions.

`defaults.json` holds those that are not `None`. A new argument need not be in the file; a changed
or missing one fails. After a change on purpose: `python -m tests.conformance.test_defaults`.
"""

import importlib
import inspect
import json
from pathlib import Path

from tests.conformance.test_type_hints import functions_of

FILE = Path(__file__).with_name("defaults.json")
NAMESPACES = ("", ".callbacks", ".compositions", ".decoding", ".label_encoders", ".layers")
NAMESPACES += (".metrics", ".models", ".ops", ".optimizers", ".scores", ".senses")
NAMESPACES += (".senses.policies",)


def list_defaults() -> dict[str, dict[str, str]]:
    """The defaults of arguments, by function."""
    found = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(f"keras_drill{namespace}")
        for value in (getattr(module, name) for name in module.__all__):
            label = f"{value.__module__}.{value.__qualname__}" if callable(value) else ""
            functions = functions_of(value) if inspect.isclass(value) else [(label, value)]
            for label, function in functions:
                if inspect.isroutine(function):
                    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
                    given = {p.name: p.default for p in parameters if p.default is not p.empty}
                    found[label] = {
                        name: repr(default)
                        for name, default in given.items()
                        if default is not None
                    }
    return {label: defaults for label, defaults in sorted(found.items()) if defaults}


def test_defaults_are_the_known_ones():
    found = list_defaults()
    for label, known in json.loads(FILE.read_text()).items():
        here = found.get(label, {})
        assert {name: here.get(name) for name in known} == known, label


if __name__ == "__main__":
    FILE.write_text(json.dumps(list_defaults(), indent=1) + "\n")
