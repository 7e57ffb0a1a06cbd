"""What goes wrong, for the command line to say."""


class ConfigError(ValueError):
    """A recipe or option that the user has to correct; the message names it."""


class RunError(RuntimeError):
    """A run that cannot start or go on; the message says why, and what to do."""


class Interrupted(Exception):
    """Raised after Ctrl-C, once the training is saved; the message says how to go on."""
