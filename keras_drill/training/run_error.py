"""The error for runs that cannot go on."""


class RunError(RuntimeError):
    """A run that cannot start or go on; the message says why, and what to do."""
