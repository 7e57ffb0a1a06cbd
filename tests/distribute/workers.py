"""Starts a module of Python as several workers on this machine."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def started(module: str, arguments: list[list[str]]) -> Iterator[list[subprocess.Popen]]:
    """`python -m module ...`, one process for each list of arguments, several with TF_CONFIG.

    Standard output and error are in each process' `stdout`. All have ended at the end.
    """
    with contextlib.ExitStack() as stack:
        configs: list[dict[str, str]] = [{}]
        if len(arguments) > 1:
            configs = _tf_configs(len(arguments))
        processes = []
        for some, config in zip(arguments, configs, strict=True):
            process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, some)],
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **config},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        yield processes


def _tf_configs(number: int) -> list[dict[str, str]]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    places = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    tasks = [{"type": "worker", "index": index} for index in range(number)]
    return [
        {"TF_CONFIG": json.dumps({"cluster": {"worker": places}, "task": task})} for task in tasks
    ]


def ended(processes: list[subprocess.Popen], seconds: float = 900) -> list[tuple[int, str]]:
    """The exit status and the output of each."""
    outputs = [process.communicate(timeout=seconds)[0] for process in processes]
    return [(process.returncode, said) for process, said in zip(processes, outputs, strict=True)]


def run_workers(module: str, arguments: list[list[str]]) -> list[str]:
    """The last line that each printed; all must end well."""
    with started(module, arguments) as processes:
        found = ended(processes)
    assert [status for status, _ in found] == [0] * len(arguments), found
    return [said.splitlines()[-1] for _, said in found]
