"""Checkpoints that are written while the training goes on."""

import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.checkpoints import CheckpointStore


def reason_of(error: OSError) -> str:
    """What the system says of an error, without its number and the file."""
    return error.strerror or str(error) or type(error).__name__


class CheckpointWriter:
    """Writes the checkpoints of a store in a thread of its own, one at a time.

    The one before stays until the new one is complete, so a kill loses no more than it does when
    the training waits. Where the disk is full, read-only or gone (`OSError`), that is said once a
    checkpoint, on the standard error, and the training goes on: the next one may succeed.
    Any other error is raised by the next call.

    A context manager, at whose end nothing is being written any more.

    Args:
        store: where they are kept.

    Example:

    >>> store = CheckpointStore(getfixture("tmp_path"))
    >>> with CheckpointWriter(store) as writer:
    ...     writer.begin(7, {"model/0": np.zeros(3)}, {"epoch": 1})
    ...     writer.require()
    >>> store.steps()
    [7]
    """

    def __init__(self, store: CheckpointStore):
        self._store = store
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(self, *exception) -> None:
        if self._thread is not None:
            self._thread.join()

    def begin(self, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Begins to write a checkpoint, once the one before it is written.

        Args:
            step: of the training.
            arrays: not to be changed any more.
            state: likewise.
        """
        self.finish()
        self._error = None
        self._thread = threading.Thread(target=self._write, args=(step, arrays, state))
        self._thread.start()

    def poll(self) -> None:
        """Says what went wrong, if a checkpoint was under way and has ended."""
        if self._thread is not None and not self._thread.is_alive():
            self.finish()

    def finish(self) -> None:
        """Waits for the checkpoint under way, and says what went wrong."""
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        if isinstance(self._error, OSError):
            print(
                f"keras-drill: warning: {self._failure(self._error)}; the training goes on, and is "
                "saved at the next checkpoint if that can be written",
                file=sys.stderr,
            )
        elif self._error is not None:
            raise self._error

    def require(self) -> None:
        """Waits for the checkpoint under way. Raises `RunError` where the last one failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if isinstance(self._error, OSError):
            raise RunError(f"{self._failure(self._error)}; resuming begins there") from self._error
        if self._error is not None:
            raise self._error

    def _write(self, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        try:
            self._store.save(step, arrays, state)
        except Exception as error:  # for the thread of the training
            self._error = error

    def _failure(self, error: OSError) -> str:
        steps = self._store.steps()
        kept = f"the last one, of step {steps[-1]}, is kept" if steps else "there is none yet"
        return f"{self._store.folder}: no checkpoint can be written ({reason_of(error)}); {kept}"
