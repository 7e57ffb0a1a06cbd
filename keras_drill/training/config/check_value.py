"""Values of options: their types, ranges and choices."""

import dataclasses
import math
import operator
from typing import Any

from keras_drill.training.config.suggest import suggest
from keras_drill.training.config_error import ConfigError

_EXPECTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple[str, ...]: 'a list of texts such as ["one", "two"]',
}
_BOUNDS = {
    "minimum": (operator.ge, "at least"),
    "above": (operator.gt, "greater than"),
    "maximum": (operator.le, "at most"),
    "below": (operator.lt, "less than"),
}


def check_value(name: str, field: dataclasses.Field, value: Any) -> Any:
    """The value in the option's type, converted from text when it comes from a command line."""
    value = _convert(field.type, value)
    if value is None:
        raise ConfigError(f"option {name} must be {_EXPECTED[field.type]}")
    choices = field.metadata["choices"]
    if choices and value not in choices:
        raise ConfigError(f"option {name} cannot be {value!r}{suggest(value, choices)}")
    for bound, (holds, words) in _BOUNDS.items():
        limit = field.metadata[bound]
        if limit is not None and not holds(value, limit):
            raise ConfigError(f"option {name} must be {words} {limit}, not {value}")
    return value


def _convert(kind: type, value: Any) -> Any:
    """The value as `kind`, or `None` where it is not one."""
    if isinstance(value, str) and kind in (int, float, bool):
        value = _parse(kind, value)
    if kind == tuple[str, ...]:
        value = (value,) if isinstance(value, str) else value
        ok = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        value = tuple(value) if ok else value
    elif kind is float:
        # bool is an int to Python, but "learning_rate = true" is a mistake.
        ok = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        value = float(value) if ok else value
    else:
        ok = type(value) is kind
    return value if ok else None


def _parse(kind: type, text: str) -> Any:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    try:
        return kind(text)
    except ValueError:
        return None
