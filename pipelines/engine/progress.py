"""Progress messages on the standard error stream."""

import sys
import time
from typing import TextIO

from keras_drill.workbench.report.page.formatting import format_duration


class ProgressLine:
    """Prints the progress of a component.

    On a terminal, each message overwrites the last one. Otherwise a line is printed at intervals.

    Args:
        title: Beginning of the line.
        stream: Stream to write to; `None` for the standard error stream.
        interval: Seconds between lines if the stream is not a terminal.
    """

    def __init__(self, title: str, stream: TextIO | None = None, interval: float = 20.0):
        self.title = title
        self.stream = sys.stderr if stream is None else stream
        self._terminal = self.stream.isatty()
        self._interval = 0.2 if self._terminal else interval
        self._started = self._last_report = time.monotonic()
        self._width = 0

    def __call__(self, done: float, unit: str, total: float | None = None) -> None:
        moment = time.monotonic()
        if moment - self._last_report < self._interval:
            return
        self._last_report = moment
        of = "" if total is None else f" of {total:,.0f}"
        seconds = moment - self._started
        self._write(f"{self.title}: {done:,.0f}{of} {unit}, {format_duration(seconds)}")

    def end(self, message: str) -> None:
        """Writes the last line."""
        self._write(f"{self.title}: {message}")
        if self._terminal:
            self.stream.write("\n")
        self.stream.flush()

    def _write(self, line: str) -> None:
        if self._terminal:
            self.stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()
