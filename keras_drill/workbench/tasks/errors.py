"""Errors whose messages the command line shows."""

import signal


class ConfigError(ValueError):
    """An invalid recipe or option. The message names the option that the user has to correct."""


class RunError(RuntimeError):
    """A run that cannot start or continue. The message says why, and what to do."""


class Diverged(RunError):
    """A training run whose loss or weights have become NaN or infinite."""


class Interrupted(Exception):
    """Raised after Ctrl-C or another signal, when the training run is saved.

    Args:
        message: says how to resume.
        number: number of the signal.

    Attributes:
        exit_status: exit status of the program, 128 plus the signal's number, as in shells.
    """

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.exit_status = 128 + number


def exit_status_of(error: Exception) -> int:
    """Exit status for an error: its `exit_status`, 2 for wrong usage, or else 1.

    >>> [exit_status_of(error) for error in (Interrupted("stop"), ConfigError("no"), OSError())]
    [130, 2, 1]
    """
    return getattr(error, "exit_status", 2 if isinstance(error, ConfigError) else 1)
