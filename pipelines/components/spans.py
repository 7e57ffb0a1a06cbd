"""Spans: numbered parts of the data, for example one for each day."""

import re
from pathlib import Path

from keras_drill.workbench.tasks.errors import ConfigError

_MARK = "{SPAN}"


def find_span(data: str, span: int | None = None) -> tuple[str, int | None]:
    """Finds the path and the number of a span.

    Args:
        data: Path of the data. `{SPAN}` in the path stands for the number, with or without leading
            zeros.
        span: Number of the span; `None` for the largest number found.

    Returns:
        The path with the number in place of `{SPAN}`, and the number. The number is `None` if the
        path does not contain `{SPAN}`.

    Example:

    >>> folder = getfixture("tmp_path")
    >>> for number in (7, 12):
    ...     (folder / f"day-{number}").mkdir()
    >>> path, number = find_span(f"{folder}/day-{{SPAN}}")
    >>> path.removeprefix(str(folder)), number
    ('/day-12', 12)
    """
    if _MARK not in data:
        if span is not None:
            raise ConfigError(
                f"--span requires {_MARK} in --data, in place of the number. "
                f"Received: --span {span}"
            )
        return data, None
    before, _, after = data.partition(_MARK)
    if _MARK in after:
        raise ConfigError(f"--data must have {_MARK} once. Received: {data}")
    parent, _, prefix = before.rpartition("/")
    rest, _, below = after.partition("/")
    folder = Path(parent or ("/" if before.startswith("/") else "."))
    if not folder.is_dir():
        raise ConfigError(f"--data must be in an existing folder. Received: {data}")
    pattern = re.compile(rf"{re.escape(prefix)}(\d+){re.escape(rest)}")
    spans = {
        int(match[1]): path for path in folder.iterdir() if (match := pattern.fullmatch(path.name))
    }
    if not spans or (span is not None and span not in spans):
        found = f"spans {min(spans)} to {max(spans)}" if spans else "no span"
        wanted = "" if span is None else f"span {span} of "
        raise ConfigError(f"found no {wanted}--data {data}: there is {found} in {folder}")
    number = max(spans) if span is None else span
    return str(spans[number] / below) if below else str(spans[number]), number
