"""What goes wrong, for the command line to say."""

import signal


class ConfigError(ValueError):
    """A recipe or option that the user has to correct; the message names it."""


class RunError(RuntimeError):
    """A run that cannot start or go on; the message says why, and what to do."""


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
