"""Parser of command lines, including the options of recipes such as `--training.epochs`."""

import argparse
import dataclasses
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from keras_drill.workbench.tasks.config.option import suggest
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.load_config import all_options

_OVERRIDE = re.compile(r"--([a-z][a-z_-]*\.[A-Za-z_-]+)(?:=(.*))?", re.DOTALL)
_GUARD = "\0"  # cannot occur in a word of a command line


class ArgumentParser(argparse.ArgumentParser):
    """`argparse` parser that prints errors on one line and accepts no abbreviated options.

    Args:
        program: Name of the program, which stands at the beginning of error messages.
        **kwargs: See `argparse.ArgumentParser`.
    """

    def __init__(self, program: str = "keras-drill", **kwargs):
        self.program = program
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs
        )

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Parses a command line with options at any position.

        Words after the first `--` are never options.

        Example:

        >>> parser = ArgumentParser(prog="score")
        >>> _ = parser.add_argument("folder")
        >>> _ = parser.add_argument("texts", nargs="*")
        >>> _ = parser.add_argument("--seed", type=int)
        >>> parser.parse_words(["a", "--seed", "3", "one", "--", "--two", "--"])
        Namespace(seed=3, folder='a', texts=['one', '--two', '--'])
        """
        args = self.parse_intermixed_args(_guarded(words))
        for name, value in vars(args).items():
            setattr(args, name, _unguarded(value))
        return args

    def error(self, message: str):
        message = message.replace(_GUARD, "")
        message = re.sub(r"^argument (\S+): expected one argument", r"\1 needs a value", message)
        message = re.sub(r"^argument (\S+): must", r"\1 must", message)
        unknown = re.match(r"unrecognized arguments: (-\S+)", message)
        if unknown:
            message += self._suggest(unknown[1].partition("=")[0])
            if not unknown[1].startswith("--"):
                message += " (words that begin with a dash go after --)"
        body, received, value = message.partition(". Received: ")
        hint = f"; see {self.prog} --help"
        print(f"{self.program}: error: {body}{hint}{received}{value}", file=sys.stderr)
        sys.exit(2)

    def _suggest(self, name: str) -> str:
        """Returns a hint for an unknown option: similar options of recipes or of this command.

        The hint is empty if there is no similar option.
        """
        own = sorted(set(re.findall("--[a-z-]+", self.format_usage())))
        sections: dict[str, list[str]] = {}
        for option in all_options():
            sections.setdefault(option.partition(".")[2], []).append(f"--{option}")
        key = name.lstrip("-").replace("-", "_")
        takes_options = self.get_default("takes_options")
        nearest = [key] if key in sections else []
        if takes_options and not difflib.get_close_matches(name, own):
            nearest = nearest or difflib.get_close_matches(key, sections, n=1)
        if not nearest:
            return suggest(name, own)
        found = sections[nearest[0]]
        if takes_options:
            return f"; did you mean {' or '.join(found)}?"
        are = "is an option" if len(found) == 1 else "are options"
        return f"; {' and '.join(found)} {are} of `keras-drill train` only"


def take_overrides(
    words: Sequence[str], options: Mapping[str, dataclasses.Field] | None = None
) -> tuple[list[str], dict[str, str | list[str]]]:
    """Separates the options of recipes from the other words of a command line.

    An option has the form `--section.key value` or `--section.key=value`. Options whose value is a
    list may be repeated.

    Args:
        words: The words of a command line.
        options: The options to separate, by full name; `None` for the options of recipes.

    Returns:
        The other words, and a mapping from the option's full name to its value.

    Raises:
        ConfigError: An option is unknown, lacks a value, or is repeated.

    Example:

    >>> take_overrides(["train", "small-tied", "--training.epochs", "3"])
    (['train', 'small-tied'], {'training.epochs': '3'})
    """
    options = all_options() if options is None else options
    lists = {name for name, field in options.items() if field.type == tuple[str, ...]}
    others: list[str] = []
    given: dict[str, list[str]] = {}
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
        if name in given and name not in lists:
            raise ConfigError(f"option --{match[1]} is given twice; give one value")
        given.setdefault(name, []).append(value)
    overrides = {name: values if name in lists else values[0] for name, values in given.items()}
    return others, overrides


def _guarded(words: Sequence[str]) -> list[str]:
    """Removes the first `--`, and marks the words after it so that argparse reads no options."""
    place = words.index("--") if "--" in words else len(words)
    before = [re.sub(r"^(--[a-z-]+=)--$", rf"\1{_GUARD}--", word) for word in words[:place]]
    return before + [_GUARD + word for word in words[place + 1 :]]


def _unguarded(value: Any) -> Any:
    if isinstance(value, list):
        return [_unguarded(item) for item in value]
    return value.removeprefix(_GUARD) if isinstance(value, str) else value
