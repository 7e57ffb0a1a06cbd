"""Options of a recipe given on the command line."""

import re
from collections.abc import Sequence

from keras_drill.training.config import RunConfig
from keras_drill.training.config.suggest import suggest
from keras_drill.training.config_error import ConfigError

_OVERRIDE = re.compile(r"--([a-z][a-z_-]*\.[A-Za-z_-]+)(?:=(.*))?", re.DOTALL)


def take_overrides(words: Sequence[str]) -> tuple[list[str], dict[str, object]]:
    """Takes `--section.key value` and `--section.key=value` out of a command line.

    An option that is a list may be repeated.

    Returns:
        The other words, and a mapping from the option's full name to its value.

    Example:

    >>> take_overrides(["train", "small-tied", "--training.epochs", "3"])
    (['train', 'small-tied'], {'training.epochs': '3'})
    """
    options = RunConfig.options()
    others: list[str] = []
    overrides: dict[str, object] = {}
    rest = iter(words)
    for word in rest:
        match = _OVERRIDE.fullmatch(word)
        if match is None:
            others.append(word)
            if word == "--":
                others.extend(rest)
            continue
        name = match[1].replace("-", "_")
        if name not in options:
            raise ConfigError(f"unknown option --{match[1]}{suggest(name, options)}")
        value = match[2] if match[2] is not None else next(rest, None)
        if value is None:
            raise ConfigError(f"option --{match[1]} needs a value")
        if options[name].type == tuple[str, ...]:
            overrides.setdefault(name, []).append(value)
        elif name in overrides:
            raise ConfigError(f"option --{match[1]} is given twice")
        else:
            overrides[name] = value
    return others, overrides
