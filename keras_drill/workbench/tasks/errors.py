"""What goes wrong, for the command line to say."""

import signal


class ConfigError(ValueError):
    """A recipe or option that the user has to correct; the message names it."""


class RunError(RuntimeError):
    """A run that cannot start or go on; the message says why, and what to do."""


class Diverged(RunError):
    """A training whose numbers are none any more."""


class Interrupted(Exception):
    """Raised after Ctrl-C or another signal, once the training is saved.

    Args:
        message: says how to go on.
        number: that of the signal.

    Attributes:
        exit_status: of the program, 128 and the number, as shells have it.
    """

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.exit_status = 128 + number


def exit_status_of(error: Exception) -> int:
    """What a program ends with for an error: its `exit_status`; 2 for wrong usage; or else 1.

    >>> [exit_status_of(error) for error in (Interrupted("stop"), ConfigError("no"), OSError())]
    [130, 2, 1]
    """
    return getattr(error, "exit_status", 2 if isinstance(error, ConfigError) else 1)
