"""Ctrl-C in the middle of a training step."""

import signal
import sys

from keras_drill.training.interrupted import Interrupted


class StopSignal:
    """Turns Ctrl-C and SIGTERM into a question that is asked between batches.

    A context manager. The first signal only sets `received`, so that no step is left half done; a
    second one stops at once, and the training goes back to its last checkpoint when resumed.

    Args:
        resume_command: what to type to go on, for the message.
    """

    def __init__(self, resume_command: str):
        self.resume_command = resume_command
        self.received = False
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "StopSignal":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def raise_interrupted(self) -> None:
        """Raises `Interrupted`, after the training was saved."""
        raise Interrupted(f"interrupted; everything is saved. To go on: {self.resume_command}")

    def _handle(self, number, frame) -> None:
        if self.received:
            raise Interrupted(
                "interrupted at once; resuming begins at the last checkpoint. "
                f"To go on: {self.resume_command}"
            )
        self.received = True
        print("\nsaving after this step (Ctrl-C again to stop at once)", file=sys.stderr)
