"""Reads the JSON files that this package writes."""

import json
import os
from pathlib import Path
from typing import Any


def read_json(path: str | os.PathLike) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Args:
        path: The file.

    Raises:
        ValueError: The file does not contain an object, or is damaged.

    Example:

    >>> path = getfixture("tmp_path") / "a.json"
    >>> _ = path.write_text('{"words": 7}')
    >>> read_json(path)
    {'words': 7}
    """
    path = Path(path)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"Expected a JSON file, but the file is damaged ({error}). Received: {str(path)!r}"
        ) from None
    if not isinstance(told, dict):
        raise ValueError(f"Expected a JSON file that holds an object. Received: {str(path)!r}")
    return told
