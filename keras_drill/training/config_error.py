"""The error for options that make no sense."""


class ConfigError(ValueError):
    """A recipe or option that the user has to correct; the message names it."""
