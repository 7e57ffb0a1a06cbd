"""Runs pytest in processes that need not import TensorFlow first.

This process imports TensorFlow and Keras once, but nothing of the package, and is forked for each
run. A run has a process group of its own, which ends with it.
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_IMPORTED = ("tensorflow", "keras", "pytest", "hypothesis", "scipy.stats", "tensorflow_text")
TIMED_OUT = "timed out"


def import_libraries() -> None:
    """Imports what all runs need."""
    for name in _IMPORTED:
        importlib.import_module(name)
    assert "keras_drill" not in sys.modules, "the package itself is imported by each run"
    gc.collect()
    gc.freeze()


def run_pytest(
    tree: Path,
    words: Sequence[str],
    log: Path,
    cpu_seconds: float,
    keeps_compiled: bool = False,
    plugin: object | None = None,
) -> int | str:
    """Runs pytest inside `tree`.

    Args:
        tree: The project in which to run.
        words: pytest's command line.
        log: A file for all output.
        cpu_seconds: Computing time after which the run is ended. Other work on the machine does
            not count; a run that waits for ever is ended after ten times as long.
        keeps_compiled: Whether to write compiled files.
        plugin: A plugin for pytest. If it has a method `finish`, the run calls it at its end.

    Returns:
        pytest's exit status, or `TIMED_OUT`.
    """
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as scratch:  # a run that is ended cleans nothing up
        child = os.fork()
        if child == 0:
            status = 70
            try:
                tempfile.tempdir = os.environ["TMPDIR"] = scratch
                status = _run(tree, words, log, cpu_seconds, keeps_compiled, plugin)
            finally:
                os._exit(status)
        return _wait(child, 10 * cpu_seconds)


def _run(tree, words, log, cpu_seconds, keeps_compiled, plugin) -> int:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, int(cpu_seconds) + 6))
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree)
    sys.dont_write_bytecode = not keeps_compiled
    # The tests and the package of the tree, and not those that lie around this module.
    sys.path[:] = [str(tree), *sys.path[1:]]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    importlib.invalidate_caches()

    import pytest

    status = int(pytest.main(["-q", "-p", "no:cacheprovider", *words], [plugin] if plugin else []))
    if plugin is not None:
        plugin.finish()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _wait(child: int, seconds: float) -> int | str:
    end = time.monotonic() + seconds
    status: int | str | None = None
    while status is None:
        ended, state = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(state)
            status = TIMED_OUT if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
        elif time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = TIMED_OUT
        else:
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what the tests started and left behind
    return status
