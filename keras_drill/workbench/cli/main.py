"""Entry point of `keras-drill`."""

import sys
from collections.abc import Sequence
from importlib.metadata import version

from keras_drill.workbench.cli import (
    analyze,
    demo,
    evaluate,
    export,
    generate,
    induce_senses,
    recipes,
    runs,
    score,
    senses,
    serve,
    train,
    translate,
)
from keras_drill.workbench.cli.argument_parser import ArgumentParser, take_overrides
from keras_drill.workbench.cli.completion import complete
from keras_drill.workbench.cli.exit_status import exit_status
from keras_drill.workbench.cli.streams import prepare_interrupts, prepare_streams, prepare_warnings
from keras_drill.workbench.tasks.config.option import suggest

_COMMANDS = (
    train,
    evaluate,
    analyze,
    senses,
    induce_senses,
    generate,
    score,
    translate,
    export,
    serve,
    runs,
    recipes,
    demo,
)

_FIRST_STEPS = """\
keras-drill trains, evaluates and serves language models. The five commands to begin with:

  keras-drill demo                                                train and compare two small models
  keras-drill train small-drill --data text.txt --run runs/drill  train a model on your text
  keras-drill evaluate runs/drill                                 perplexity, and a report
  keras-drill generate runs/drill "the"                           continue a text
  keras-drill export runs/drill                                   write a SavedModel

All commands: keras-drill --help. Recipes: keras-drill recipes."""


def make_parser() -> tuple[ArgumentParser, dict[str, ArgumentParser]]:
    """Makes the main parser. Returns this parser, and the parsers of the commands by name."""
    parser = ArgumentParser(
        prog="keras-drill",
        description="Train, evaluate and export language models with deep output layers.",
        epilog="Begin with: keras-drill demo   or   keras-drill recipes",
    )
    parser.add_argument("--version", action="version", version=f"keras-drill {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        subparser = command.add_parser(commands)
        subparser.set_defaults(run=command.run, takes_options=command is train)
        subparser.add_argument(
            "--traceback", action="store_true", help="print the Python traceback of an error"
        )
    return parser, dict(commands.choices)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: the words of the command line. `None` uses the command line of the process. It also
            sets up the standard streams, the warnings and the handling of Ctrl-C.

    Returns:
        The exit status, see `exit_status`.
    """
    interrupts: list[int] = []
    if argv is None:
        complete(make_parser)
        interrupts = prepare_interrupts()
        prepare_streams()
        prepare_warnings("keras-drill")
    words = list(sys.argv[1:] if argv is None else argv)

    def command() -> int:
        if not words:
            print(_FIRST_STEPS)
            return 0
        args = _parse(words)
        return args.run(args)

    return exit_status(command, "keras-drill", "--traceback" in words, interrupts)


def _parse(words: list[str]):
    parser, commands = make_parser()
    words, overrides = take_overrides(words)
    first = next(iter(words), None)
    if first in commands:
        args = commands[first].parse_words(words[1:])
    elif first is None or first.startswith("-"):  # options of `train` alone, without a command
        parser.parse_args(words[:1])  # ends the process for --help, --version and errors
        parser.error(f"the command must come before its options. Received: {first} first")
    else:
        parser.error(f"unknown command {first!r}{suggest(first, sorted(commands))}")
    if overrides and not args.takes_options:
        parser.error(f"--{next(iter(overrides))} is an option of `keras-drill train` only")
    args.overrides = overrides
    return args


def _version() -> str:
    return version("keras-drill")
