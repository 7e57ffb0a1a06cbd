"""Entry point of `keras-drill`."""

import sys
from collections.abc import Sequence
from importlib.metadata import version

from keras_drill.cli import analyze, demo, evaluate, export, generate, recipes, score, senses, train
from keras_drill.cli.argument_parser import ArgumentParser
from keras_drill.cli.overrides import take_overrides
from keras_drill.training.config_error import ConfigError
from keras_drill.training.interrupted import Interrupted
from keras_drill.training.run_error import RunError

_COMMANDS = (train, evaluate, analyze, senses, generate, score, export, recipes, demo)
_USAGE, _FAILURE, _INTERRUPTED = 2, 1, 130


def make_parser() -> ArgumentParser:
    """The parser of all commands."""
    parser = ArgumentParser(
        prog="keras-drill",
        description="Train, judge and export language models with deep output layers.",
        epilog="Begin with: keras-drill demo   or   keras-drill recipes",
    )
    parser.add_argument("--version", action="version", version=f"keras-drill {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        subparser = command.add_parser(commands)
        subparser.set_defaults(run=command.run, takes_options=command is train)
        subparser.add_argument(
            "--traceback", action="store_true", help="show where in the code an error came from"
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0, 1 for a failure, 2 for wrong usage."""
    parser = make_parser()
    words = list(sys.argv[1:] if argv is None else argv)
    show_traceback = "--traceback" in words
    try:
        words, overrides = take_overrides(words)
        args = parser.parse_args(words)
        if overrides and not args.takes_options:
            parser.error(f"--{next(iter(overrides))} is an option of `keras-drill train` only")
        args.overrides = overrides
        return args.run(args)
    except Interrupted as interrupted:
        print(f"\nkeras-drill: {interrupted}", file=sys.stderr)
        return _INTERRUPTED
    except KeyboardInterrupt:
        print("\nkeras-drill: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        sys.stderr.close()
        return _FAILURE
    except Exception as error:
        if show_traceback or not _is_expected(error):
            raise
        print(f"keras-drill: error: {_message(error)}", file=sys.stderr)
        return _USAGE if isinstance(error, ConfigError) else _FAILURE


def _version() -> str:
    return version("keras-drill")


def _is_expected(error: Exception) -> bool:
    """Whether an error is about what the user gave, and its message says it all."""
    if isinstance(error, RunError | ConfigError | OSError | ValueError):
        return True
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(error, tensorflow.errors.OpError)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
