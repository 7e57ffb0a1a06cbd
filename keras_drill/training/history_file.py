"""The history of a run as a table."""

import csv
import io
import os
from collections.abc import Sequence

from keras_drill.data.atomic import replace_file


def write_history(path: str | os.PathLike, history: Sequence[dict[str, float]]) -> None:
    """Writes one line per epoch, by rename."""
    table = io.StringIO()
    writer = csv.DictWriter(table, ["epoch", *history[0]], lineterminator="\n")
    writer.writeheader()
    for epoch, values in enumerate(history, start=1):
        writer.writerow({"epoch": epoch, **values})
    replace_file(path, table.getvalue())


def read_history(path: str | os.PathLike) -> dict[str, list[float]]:
    """Reads the columns, without the epoch.

    Example:

    >>> path = getfixture("tmp_path") / "history.csv"
    >>> write_history(path, [{"loss": 2.0}, {"loss": 1.5}])
    >>> read_history(path)
    {'loss': [2.0, 1.5]}
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in rows[0] if name != "epoch"}
