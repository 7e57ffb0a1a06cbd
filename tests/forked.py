"""Programs in processes that need not import TensorFlow first, for tests that start dozens of them.

One process imports everything once and is forked for each program.
"""

import contextlib
import multiprocessing
import os
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_IMPORTED = (
    "keras_drill.workbench.cli.main",
    "keras_drill.workbench.cli.train",
    "keras_drill.workbench.training.train_run",
    "keras_drill.workbench.tasks.language_model.task",
    "pipelines.command_line",
    "pipelines.make_pipeline",
)
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([*_IMPORTED, __name__])


def import_everything() -> None:
    """Returns when programs begin at once; without it the first one waits for that."""
    process = _FORKS.Process(target=int)
    process.start()
    process.join()


class Program:
    """`python -m module words` of which everything is imported already.

    What modules read from the environment when they are imported was read before.

    Args:
        module: Name of the module.
        words: Its words on the command line.
        log: A file for its standard output and error, which is added to.
        environment: Variables that it gets beside those of this process.
    """

    def __init__(
        self,
        module: str,
        words: Sequence[object],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ):
        self.log = log
        variables = {**os.environ, **(environment or {})}
        self._process = _FORKS.Process(
            target=_run, args=(module, [str(word) for word in words], log, variables)
        )
        self._process.start()

    @property
    def said(self) -> str:
        """What it has written."""
        return self.log.read_text() if self.log.exists() else ""

    def poll(self) -> int | None:
        """The exit status, negative where a signal ended it; `None` while it runs."""
        return self._process.exitcode

    def wait(self, seconds: float = 900) -> int:
        """The exit status, when it has ended."""
        self._process.join(seconds)
        status = self.poll()
        assert status is not None, f"it still runs, and said: {self.said}"
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._process.kill()


@contextlib.contextmanager
def program(*args: object, **options: object) -> Iterator[Program]:
    """A `Program` that has ended at the end."""
    started = Program(*args, **options)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def _run(module: str, words: list[str], log: Path, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(file, standard)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
