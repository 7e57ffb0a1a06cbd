"""Arguments of the commands that write text."""

import argparse

from keras_drill.training.config_error import ConfigError


def add_sampling_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--sampler`, its settings, `--max-tokens` and `--seed`."""
    group = parser.add_argument_group("how words are chosen")
    group.add_argument(
        "--sampler",
        choices=("greedy", "temperature", "top-k", "top-p"),
        default=default,
        help="greedy takes the most probable word, the others draw (default: %(default)s)",
    )
    group.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        help="less than 1: safer words, more: bolder ones (default: %(default)s)",
    )
    group.add_argument(
        "--k", type=int, default=40, help="top-k draws among K words (default: %(default)s)"
    )
    group.add_argument(
        "--p",
        type=float,
        default=0.9,
        help="top-p draws among words of this total probability (default: %(default)s)",
    )
    group.add_argument(
        "--max-tokens",
        type=int,
        default=50,
        metavar="N",
        help="most words to add (default: %(default)s)",
    )
    group.add_argument(
        "--seed", type=int, default=0, help="another seed, another text (default: %(default)s)"
    )


def check_sampling_arguments(args: argparse.Namespace) -> None:
    """Checks what `argparse` cannot."""
    if args.temperature <= 0:
        raise ConfigError(f"--temperature must be above 0, not {args.temperature}")
    if args.k < 1:
        raise ConfigError(f"--k must be at least 1, not {args.k}")
    if not 0 < args.p <= 1:
        raise ConfigError(f"--p must be above 0 and at most 1, not {args.p}")
    if args.max_tokens < 1:
        raise ConfigError(f"--max-tokens must be at least 1, not {args.max_tokens}")
