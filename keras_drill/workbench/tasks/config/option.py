"""Options of a configuration, and checks of their values."""

import dataclasses
import difflib
import operator
import sys
from collections.abc import Iterable
from typing import Any

from keras_drill.workbench.tasks.errors import ConfigError

AUTO_OR_BOOL = ("auto", "true", "false")  # "auto": other options determine the value
LARGEST_SEED = 2**32 - 1  # limit of NumPy's and Keras' generators


def option(
    default: Any,
    comment: str,
    *,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
    may_change: bool = False,
    in_older_runs: Any = None,
) -> Any:
    """Makes a field of a configuration dataclass.

    Args:
        default: Value if a file does not contain the option.
        comment: Description of the option, for recipes, `config.toml` and the documentation.
        choices: The allowed strings; empty if all strings are allowed.
        minimum: Smallest number allowed.
        above: Exclusive lower limit.
        maximum: Largest number allowed.
        below: Exclusive upper limit.
        may_change: Whether a run may be resumed with another value.
        in_older_runs: Value for runs whose `config.toml` was written before the option existed;
            `None` for the default.
    """
    metadata = {
        "comment": comment,
        "choices": choices,
        "minimum": minimum,
        "above": above,
        "maximum": maximum,
        "below": below,
        "may_change": may_change,
        "in_older_runs": in_older_runs,
    }
    return dataclasses.field(default=default, metadata=metadata)


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
    """Checks a value and converts it to the option's type.

    Strings from a command line are parsed as numbers and booleans.

    Raises:
        ConfigError: The value has a wrong type, or is not allowed.
    """
    kind: type = field.type  # type: ignore[assignment]  # configurations do not postpone hints
    if isinstance(value, bool) and field.metadata["choices"] == AUTO_OR_BOOL:
        value = str(value).lower()
    received, value = value, _convert(kind, value)
    if value is None:
        raise ConfigError(f"option {name} must be {_EXPECTED[kind]}. Received: {received!r}")
    choices = field.metadata["choices"]
    if choices and value not in choices:
        raise ConfigError(f"option {name} cannot be {value!r}{suggest(value, choices)}")
    for bound, (holds, words) in _BOUNDS.items():
        limit = field.metadata[bound]
        if limit is not None and not holds(value, limit):
            raise ConfigError(f"option {name} must be {words} {limit}. Received: {value}")
    return value


def _convert(kind: type, value: Any) -> Any:
    """Converts a value to `kind`; `None` if that is not possible."""
    if isinstance(value, str) and kind in (int, float, bool):
        value = _parse(kind, value)
    if kind == tuple[str, ...]:
        value = (value,) if isinstance(value, str) else value
        ok = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        value = tuple(value) if ok else value
    elif kind is float:
        # bool is an int to Python, but "learning_rate = true" is a mistake.
        ok = isinstance(value, int | float) and not isinstance(value, bool)
        ok = ok and abs(value) <= sys.float_info.max  # excludes NaN and too large integers
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


def suggest(name: str, known: Iterable[str]) -> str:
    """Returns a hint for an error about an unknown name: the most similar name, or all names.

    Example:

    >>> suggest("head.dept", ["head.depth", "head.kind"])
    "; did you mean 'head.depth'?"
    >>> suggest("colour", ["data", "head"])
    '; known: data, head'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if not close:  # "depth" for "head.depth"
        close = [other for other in known if other.rpartition(".")[2] == name.rpartition(".")[2]]
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known)}"
