"""The end of a training that was asked to stop."""


class Interrupted(Exception):
    """Raised after Ctrl-C, once the training is saved; the message says how to go on."""
