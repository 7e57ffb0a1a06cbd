"""Checks arguments, and raises errors that say what is expected."""

import numbers
from collections.abc import Iterable, Sequence
from typing import Any


def is_whole(value: Any) -> bool:
    """Returns whether a value is an integer of Python or NumPy, and not a bool.

    Example:

    >>> is_whole(3), is_whole(True), is_whole(3.0), is_whole("3")
    (True, False, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_is(name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> None:
    """Raises `ValueError` if an argument has another type.

    Args:
        name: Name of the argument.
        value: Value of the argument.
        kind: The expected type or types.
        expected: Description of the type for the message, such as "a `Tokenizer`".
    """
    if not isinstance(value, kind):
        raise ValueError(f"`{name}` must be {expected}. Received: {name}={shown(value)}")


def check_texts(name: str, texts: Any) -> None:
    """Raises `ValueError` if an argument is a single text or is not iterable."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise ValueError(
            f"`{name}` must be texts, such as `TextLines(path)` or a list of strings. "
            f"Received: {name}={shown(texts)}"
        )


def check_symbols(symbols: Sequence[str]) -> tuple[str, ...]:
    """Returns the symbols as a tuple. Raises `ValueError` if they are not distinct strings without
    white space.
    """
    check_texts("symbols", symbols)
    symbols = tuple(symbols)
    for symbol in symbols:
        if not isinstance(symbol, str) or symbol.split() != [symbol] or symbols.count(symbol) > 1:
            raise ValueError(
                "`symbols` must be distinct, non-empty strings without white space. "
                f"Received: symbols={shown(symbols)}, with the invalid or repeated {symbol!r}"
            )
    return symbols


def shown(value: Any) -> str:
    """Formats a value for an error message, in at most one line."""
    told = repr(value)
    return told if len(told) <= 80 else f"{told[:77]}..."
