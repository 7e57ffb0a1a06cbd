"""One option of a configuration section."""

import dataclasses
from typing import Any


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
) -> Any:
    """Field of a configuration dataclass.

    Args:
        default: Value where a file says nothing.
        comment: What it does; stands beside the option in recipes and in a run's `config.toml`.
        choices: The strings that are allowed; empty for any.
        minimum: Smallest number allowed.
        above: Numbers must be greater than this.
        maximum: Greatest number allowed.
        below: Numbers must be less than this.
        may_change: Whether a run may be resumed with another value.
    """
    metadata = {
        "comment": comment,
        "choices": choices,
        "minimum": minimum,
        "above": above,
        "maximum": maximum,
        "below": below,
        "may_change": may_change,
    }
    return dataclasses.field(default=default, metadata=metadata)
