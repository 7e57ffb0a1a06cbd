"""Errors whose messages the command line prints without a traceback."""

import signal


class ConfigError(ValueError):
    """An invalid recipe or option. The message names the option that the user has to correct."""


class RunError(RuntimeError):
    """A command that cannot start or continue. The message says why, and what to do."""


class Diverged(RunError):
    """A training run whose loss or weights have become NaN or infinite."""


class Interrupted(Exception):
    """Raised after Ctrl-C or another signal, to end a training run.

    Args:
        message: what was saved, and how to resume.
        number: number of the signal.

    Attributes:
        exit_status: exit status of the program, 128 plus the signal's number, as in shells.
    """

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.exit_status = 128 + number


def exit_status_of(error: Exception) -> int:
    """Returns an error's exit status: its `exit_status`, 2 for a `ConfigError`, or else 1.

    >>> [exit_status_of(error) for error in (Interrupted("stop"), ConfigError("no"), OSError())]
    [130, 2, 1]
    """
    return getattr(error, "exit_status", 2 if isinstance(error, ConfigError) else 1)
