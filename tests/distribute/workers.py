"""Starts a module of Python as several workers on this machine."""

import contextlib
import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.forked import Program, program


@contextlib.contextmanager
def started(module: str, arguments: list[list[str]]) -> Iterator[list[Program]]:
    """`python -m module ...`, one process for each list of arguments, several with TF_CONFIG.

    All have ended at the end.
    """
    configs: list[dict[str, str]] = [{}]
    if len(arguments) > 1:
        configs = _tf_configs(len(arguments))
    with contextlib.ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield [
            stack.enter_context(program(module, words, logs / str(number), config))
            for number, (words, config) in enumerate(zip(arguments, configs, strict=True))
        ]


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


def ended(processes: list[Program]) -> list[tuple[int, str]]:
    """The exit status and the output of each."""
    return [(process.wait(), process.said) for process in processes]


def run_workers(module: str, arguments: list[list[str]]) -> list[str]:
    """The last line that each printed; all must end well."""
    with started(module, arguments) as processes:
        found = ended(processes)
    assert [status for status, _ in found] == [0] * len(arguments), found
    return [said.splitlines()[-1] for _, said in found]
