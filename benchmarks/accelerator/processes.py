"""Runs every framework and size in a separate process, because allocators keep a device's memory.

A server imports the frameworks once and forks for every process, which saves seconds each time.
Do not use the device before the fork.
"""

import importlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

_PRELOADED = ("jax", "keras", "keras_drill", "torch")


def run_part(module: str, arguments: dict, deadline: float) -> Iterator[tuple[str, Any]]:
    """Runs `rows(**arguments)` of a module of this folder in another process.

    Args:
        module: Name of the module.
        arguments: Arguments of its `rows`, a generator of names and figures.
        deadline: When to stop, as `time.monotonic()` tells it.

    Yields:
        `("device", its name)`, then each row's name and figures as soon as there are any; and at
        last `(module, {"skipped": reason})` if the process did not come to its end.
    """
    os.environ.setdefault("KERAS_BACKEND", "jax")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([name for name in _PRELOADED if find_spec(name)])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, module, arguments))
    process.start()
    sender.close()
    reason = None
    while reason is None:
        if not receiver.poll(max(0.0, deadline - time.monotonic())):
            reason = "the time was up"
            process.kill()
            break
        try:
            name, found = receiver.recv()
        except EOFError:
            process.join()
            reason = f"the process ended with exit code {process.exitcode}"
            break
        if name is None:
            reason = found
        else:
            yield name, found
    process.join()
    if reason:
        yield module, {"skipped": reason}


def _work(sender, name: str, arguments: dict) -> None:
    try:
        module = importlib.import_module(f"benchmarks.accelerator.{name}")
        sender.send(("device", module.device()))
        for row in module.rows(**arguments):
            sender.send(row)
        sender.send((None, ""))
    except BaseException as error:
        sender.send((None, describe(error)))


def describe(error: BaseException) -> str:
    """An error in one line, cut to 200 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def attempt(measure, *arguments) -> dict:
    """What `measure(*arguments)` returns, or why there is none."""
    try:
        return measure(*arguments)
    except Exception as error:  # out of memory, which every version of a framework words otherwise
        return {"skipped": describe(error)}
