"""Arguments for language models that adapt to the evaluated text while reading it."""

import argparse
from collections.abc import Sequence

from keras_drill.workbench.cli.arguments import number, whole_number
from keras_drill.workbench.tasks.adaptation import Adaptation
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError, RunError

_SETTINGS = {
    "dynamic": {
        "dynamic_rule": "rule",
        "dynamic_rate": "learning_rate",
        "dynamic_decay": "decay",
        "dynamic_length": "length",
        "dynamic_rows": "rows",
    },
    "cache": {
        "cache_size": "cache_size",
        "cache_theta": "cache_theta",
        "cache_weight": "cache_weight",
    },
}


def add_adaptation_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--dynamic`, `--cache` and their settings."""
    group = parser.add_argument_group(
        "language models that adapt to the text",
        "Settings without a default are chosen on validation text.",
    )
    group.add_argument(
        "--dynamic",
        action="store_true",
        help="dynamic evaluation: the model learns from each segment after predicting it",
    )
    group.add_argument(
        "--dynamic-rule",
        choices=("rms", "sgd"),
        help="update rule: rms scales steps by the gradients on training text, sgd is plain SGD "
        "(default: rms)",
    )
    group.add_argument(
        "--dynamic-rate", type=number(at_least=0), metavar="RATE", help="learning rate of --dynamic"
    )
    group.add_argument(
        "--dynamic-decay",
        type=number(at_least=0, at_most=1),
        metavar="DECAY",
        help="decay towards the trained weights after each segment",
    )
    group.add_argument(
        "--dynamic-length",
        type=whole_number(1),
        metavar="N",
        help=f"tokens of a segment (default: {Adaptation.length})",
    )
    group.add_argument(
        "--dynamic-rows",
        type=whole_number(1),
        metavar="N",
        help="number of parts of the text that are read in parallel: more parts are faster and "
        f"adapt less (default: {Adaptation.rows})",
    )
    group.add_argument(
        "--cache",
        action="store_true",
        help="neural cache: words that occurred in similar contexts become more probable",
    )
    group.add_argument(
        "--cache-size", type=whole_number(1), metavar="N", help="number of contexts in the cache"
    )
    group.add_argument(
        "--cache-theta",
        type=number(at_least=0),
        metavar="THETA",
        help="weight of the similarity of contexts; 0 treats all contexts alike",
    )
    group.add_argument(
        "--cache-weight",
        type=number(above=0, below=1),
        metavar="WEIGHT",
        help="share of the cache in the probabilities",
    )
    group.add_argument(
        "--search-tokens",
        type=whole_number(2),
        metavar="N",
        help="number of tokens of the validation text on which settings are chosen (default: "
        f"{Adaptation.search_tokens:,})",
    )


def given_adaptation(args: argparse.Namespace) -> Adaptation | None:
    """Makes an `Adaptation` from the arguments.

    Returns:
        The adaptation, or `None` without `--dynamic` and `--cache`.

    Raises:
        ConfigError: A setting of `--dynamic` or `--cache` is given without that option.
    """
    for option, settings in _SETTINGS.items():
        for name in settings:
            value = getattr(args, name)
            if value is not None and not getattr(args, option):
                flag = f"--{name.replace('_', '-')}"
                raise ConfigError(
                    f"{flag} needs --{option}: add --{option}, or omit {flag}. "
                    f"Received: {flag} {value}"
                )
    if not args.dynamic and not args.cache:
        if args.search_tokens is not None:
            raise ConfigError(
                "--search-tokens needs --dynamic or --cache: add one of these options, or omit "
                f"--search-tokens. Received: --search-tokens {args.search_tokens}"
            )
        return None
    names = {name: field for each in _SETTINGS.values() for name, field in each.items()}
    names["search_tokens"] = "search_tokens"
    given = {field: getattr(args, name) for name, field in names.items()}
    given = {field: value for field, value in given.items() if value is not None}
    if args.dynamic:
        given.setdefault("rule", "rms")
    return Adaptation(**given, has_cache=args.cache)


def check_adapts(args: argparse.Namespace, configs: Sequence[RunConfig]) -> None:
    """Raises `RunError` unless all runs have language models."""
    for folder, config in zip(args.folders, configs, strict=True):
        if config.reads_sources:
            raise RunError(
                "--dynamic and --cache are for language models: evaluate other runs without them. "
                f"Received: {folder}, whose task is {config.task}"
            )
