"""Starts a module of Python as several workers on this machine."""

import json
import os
import socket
import subprocess
import sys


def run_workers(module: str, arguments: list[list[str]], seconds: float = 200) -> list[str]:
    """Runs `python -m module ...` with TF_CONFIG, one process for each list of arguments.

    Returns what each printed; the end of one that fails is the end of all.
    """
    sockets = [socket.socket() for _ in arguments]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    places = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    processes = []
    try:
        for index, some in enumerate(arguments):
            task = {"type": "worker", "index": index}
            config = json.dumps({"cluster": {"worker": places}, "task": task})
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", module, *some],
                    env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_CONFIG": config},
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        outputs = [process.communicate(timeout=seconds)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs
