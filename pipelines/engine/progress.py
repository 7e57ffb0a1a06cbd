"""What is told on the standard error stream while components work."""

import sys
import time
from typing import TextIO

from keras_drill.workbench.report.page.formatting import format_duration


class ProgressLine:
    """The progress of a component: a line that is rewritten on a terminal, else a line at times.

    Args:
        title: What the line begins with.
        stream: Where to write; `None` for the standard error stream.
        interval: Seconds between lines where the stream is no terminal.
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
        """The last line."""
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
