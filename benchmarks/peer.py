"""Runs another library in its own environment and process."""

import os
import subprocess
from pathlib import Path

from benchmarks.timing import num_cores


class Peer:
    """A process that runs a task for each line it is sent, and answers with a line.

    Args:
        python: The interpreter of the environment.
        module: What it runs, of this folder.
        *arguments: The module's arguments.
    """

    def __init__(self, python: str, module: str, *arguments: str):
        root = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            [python, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": str(num_cores())},
        )
        self._answer()  # it has set itself up

    def __call__(self, task: str) -> str:
        self.process.stdin.write(task + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the other library's process ended; what it said is above")
        return line.strip()
