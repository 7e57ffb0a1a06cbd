"""Writes checkpoints in the background, while the training continues."""

import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.checkpoints import CheckpointStore


def reason_of(error: OSError) -> str:
    """Returns the operating system's message for an error, without error number and file."""
    return error.strerror or str(error) or type(error).__name__


class CheckpointWriter:
    """Writes checkpoints in a background thread, one at a time, while the training continues.

    The previous checkpoint is kept until the new one is complete, so a killed process always leaves
    a complete checkpoint. If a checkpoint fails because the disk is full, read-only or removed
    (`OSError`), the writer prints a warning and the training continues. The next call raises any
    other error.

    The writer is a context manager. At the end of its context, it waits for the checkpoint that is
    being written.

    Args:
        store: the store of the checkpoints.

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
        """Waits for the previous checkpoint, then begins to write a new one.

        Args:
            step: step of the training.
            arrays: arrays of the checkpoint. The caller must not change them afterwards.
            state: state of the training. The caller must not change it afterwards.
        """
        self.finish()
        self._error = None
        self._thread = threading.Thread(target=self._write, args=(step, arrays, state))
        self._thread.start()

    def poll(self) -> None:
        """Calls `finish` if the background thread has ended."""
        if self._thread is not None and not self._thread.is_alive():
            self.finish()

    def finish(self) -> None:
        """Waits for the checkpoint that is being written.

        If the checkpoint failed with an `OSError`, prints a warning on standard error. Raises any
        other error.
        """
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        if isinstance(self._error, OSError):
            print(
                f"keras-drill: warning: {self._failure(self._error)}; the training continues and "
                "tries again at the next checkpoint",
                file=sys.stderr,
            )
        elif self._error is not None:
            raise self._error

    def require(self) -> None:
        """Waits for the last checkpoint, and raises `RunError` if it failed."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if isinstance(self._error, OSError):
            raise RunError(f"{self._failure(self._error)}; training resumes there") from self._error
        if self._error is not None:
            raise self._error

    def _write(self, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        try:
            self._store.save(step, arrays, state)
        except Exception as error:  # raised again in the training's thread
            self._error = error

    def _failure(self, error: OSError) -> str:
        steps = self._store.steps()
        kept = f"the checkpoint of step {steps[-1]} is kept" if steps else "there is none yet"
        return f"{self._store.folder}: a checkpoint cannot be written ({reason_of(error)}); {kept}"
