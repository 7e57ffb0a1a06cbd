"""Arguments of beam search, with the options of the run as defaults."""

import argparse
import math
from collections.abc import Callable, Collection
from typing import Any

from keras_drill.workbench.tasks.config.option import check_value
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.load_config import all_options

# Options of [decoding] that are arguments, with the names of their values in the help.
_ARGUMENTS = {
    "num_beams": "K",
    "length_penalty": "A",
    "coverage_penalty": "C",
    "num_groups": "G",
    "diversity": "D",
    "max_tokens": "N",
    "max_ratio": "R",
    "min_length": "N",
    "repetition_penalty": "R",
    "no_repeat_ngram": "N",
    "banned_words": "WORDS",
    "replace_unknown": "",
    "max_source_tokens": "N",
}


def add_search_arguments(parser: argparse.ArgumentParser, but: Collection[str] = ()) -> None:
    """Adds the settings of beam search, which are the options `[decoding]` of recipes.

    Args:
        parser: The parser of a command.
        but: Names of options that are not added, because the command already has them.
    """
    group = parser.add_argument_group("beam search (default: options [decoding] of the run)")
    options = all_options()
    for name, metavar in {"num_results": "N", **_ARGUMENTS}.items():
        if name in but:
            continue
        field = options[f"decoding.{name}"]
        flags = ["-n", "--n-best"] if name == "num_results" else []
        flags.append(f"--{name.replace('_', '-')}")
        comment = field.metadata["comment"]
        if field.type is bool:
            group.add_argument(*flags, dest=name, action="store_const", const=True, help=comment)
            continue
        is_list = field.type == tuple[str, ...]
        group.add_argument(
            *flags,
            dest=name,
            type=str if is_list else _value(field),
            action="append" if is_list else "store",
            metavar=metavar,
            help=comment + ("; may be given several times" if is_list else ""),
        )


def given_search_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the search arguments that were given, by name."""
    values = {name: getattr(args, name) for name in ("num_results", *_ARGUMENTS)}
    return {name: value for name, value in values.items() if value is not None}


def search_changes(args: argparse.Namespace, config: Any) -> dict[str, Any]:
    """Returns the new values of the options that the arguments change, by full name.

    Raises:
        ConfigError: The changed options contradict each other.
    """
    given = given_search_arguments(args)
    results = given.get("num_results", config.decoding.num_results)
    if results > given.get("num_beams", math.inf):
        raise ConfigError(
            f"-n must be at most --num-beams = {given['num_beams']}. Received: {results}"
        )
    if results > config.decoding.num_beams:
        # The smallest number of beams that suffices, with the same number in each group.
        groups = given.get("num_groups", config.decoding.num_groups)
        given.setdefault("num_beams", math.ceil(results / groups) * groups)
    changes = {f"decoding.{name}": value for name, value in given.items()}
    config.replace(changes)  # raises an error for options that contradict each other
    return changes


def _value(field: Any) -> Callable[[str], Any]:
    """Returns a `type` for `add_argument` that accepts the values allowed for an option."""

    def convert(text: str) -> Any:
        try:
            return check_value("", field, text)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("option  ")) from None

    return convert
