"""Arguments that several commands have, and what can be said about values before any work."""

import argparse
import itertools
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.load_config import all_options, load_config

MAX_INT = 2**31 - 1
MAX_TOKENS = 50  # of what is added to a text, by default
_SAMPLER_SETTINGS = ("sampler", "temperature", "k", "p", "min_p", "seed")
_DATA_SET = "tfds:"  # and the name of a data set, in place of a path


def whole_number(at_least: int, at_most: int = MAX_INT) -> Callable[[str], int]:
    """A `type` for `add_argument`: whole numbers in a range.

    Example:

    >>> whole_number(1)("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be at least 1, not 0
    """

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None
        if value < at_least:
            raise argparse.ArgumentTypeError(f"must be at least {at_least}, not {value}")
        if value > at_most:
            raise argparse.ArgumentTypeError(f"must be at most {at_most}, not {value}")
        return value

    return convert


def number(
    above: float | None = None,
    below: float = math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Callable:
    """A `type` for `add_argument`: finite numbers in a range, above or at least one of them."""
    limits = [f"at least {at_least:g}" if above is None else f"above {above:g}"]
    limits += [f"below {below:g}"] if below < math.inf else []
    limits += [f"at most {at_most:g}"] if at_most < math.inf else []

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None
        is_large_enough = value >= at_least if above is None else value > above
        if not (is_large_enough and value < below and value <= at_most and math.isfinite(value)):
            if value == math.inf:
                raise argparse.ArgumentTypeError("must be finite, not inf")
            raise argparse.ArgumentTypeError(f"must be {' and '.join(limits)}, not {value}")
        return value

    return convert


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `RUN`, one folder."""
    parser.add_argument("folder", metavar="RUN", help="folder of the run")


def add_checkpoint_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--checkpoint`."""
    parser.add_argument(
        "--checkpoint",
        type=_checkpoint,
        metavar="STEP|last",
        help="the model of this checkpoint, by its step, or of the last (default: the best model)",
    )


def add_text_and_report_arguments(parser: argparse.ArgumentParser, report: str) -> None:
    """Adds `--data` and `--report`; `report` says where the page is by default."""
    parser.add_argument(
        "--data",
        action="append",
        metavar="PATH",
        help="a text that is read as a whole, in place of the corpus of the run: a file, a folder "
        "with any of the splits, or, for pairs, a file of sources and one of targets, each with "
        "a --data of its own",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help=f"the page, one HTML file (default: {report}; with --data or --checkpoint the name "
        "says so, and no page is overwritten)",
    )


def add_sampling_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--sampler`, its settings, `--max-tokens` and `--stop`."""
    group = add_sampler_arguments(parser, "how words are chosen", default)
    group.add_argument(
        "--max-tokens",
        type=whole_number(1, 1_000_000),
        metavar="N",
        help=f"most words to add (default: {MAX_TOKENS})",
    )
    group.add_argument(
        "--stop",
        action="append",
        default=[],
        type=_stop_string,
        metavar="STRING",
        help="end a text before this string; may be given several times",
    )


def add_sampler_arguments(parser: argparse.ArgumentParser, title: str, default: str) -> Any:
    """Adds a group with `--sampler`, its settings and `--seed`, and returns it."""
    group = parser.add_argument_group(title)
    group.add_argument(
        "--sampler",
        choices=all_options()["samples.sampler"].metadata["choices"],
        default=default,
        help="greedy takes the most probable word, the others draw (default: %(default)s)",
    )
    group.add_argument(
        "--temperature",
        type=number(above=0),
        default=1.0,
        metavar="T",
        help="less than 1: safer words, more: bolder ones (default: %(default)s)",
    )
    group.add_argument(
        "--k",
        type=whole_number(1),
        default=40,
        metavar="K",
        help="top-k draws among K words (default: %(default)s)",
    )
    group.add_argument(
        "--p",
        type=number(above=0, at_most=1),
        default=0.9,
        metavar="P",
        help="top-p draws among words of this total probability (default: %(default)s)",
    )
    group.add_argument(
        "--min-p",
        type=number(above=0, at_most=1),
        default=0.1,
        metavar="P",
        help="min-p draws among words that are P times as probable as the best (default: "
        "%(default)s)",
    )
    group.add_argument(
        "--seed",
        type=whole_number(0, 2**32 - 1),
        default=0,
        metavar="S",
        help="another seed, another text (default: %(default)s)",
    )
    return group


def sampler_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of `add_sampler_arguments`, by name."""
    return {name: getattr(args, name) for name in _SAMPLER_SETTINGS}


def _checkpoint(text: str) -> int | str:
    return text if text == "last" else whole_number(0)(text)


def _stop_string(text: str) -> str:
    try:
        text = os.fsencode(text).decode("utf-8")
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(f"must be UTF-8, not {os.fsencode(text)!r}") from None
    if not text:
        raise argparse.ArgumentTypeError("must be a string, not empty")
    return text


def check_runs(folders: Sequence[str], checkpoint: int | str | None) -> list[RunConfig]:
    """Makes sure that folders are those of runs with a model; gives their options."""
    configs = []
    for folder in folders:
        path = Path(folder)
        if not path.is_dir():
            what = "is a file" if path.exists() else "is not there"
            hint = "; each file of a text takes a --data of its own" if path.exists() else ""
            raise RunError(f"{folder} {what}; expected the folder of a run{hint}")
        if not (path / "config.toml").is_file():
            raise RunError(f"{folder} is not the folder of a run: there is no config.toml in it")
        configs.append(load_config(path / "config.toml", is_run=True))
        if checkpoint is None and not (path / "model.keras").is_file():
            raise RunError(
                f"{folder} has no model yet: there is one after the first epoch of "
                "`keras-drill train`"
            )
    return configs


def check_continues(folder: str, checkpoint: int | str | None) -> RunConfig:
    """Makes sure that a folder is that of a run whose model continues texts."""
    (config,) = check_runs([folder], checkpoint)
    if config.reads_sources:
        raise RunError(
            f"the model of {folder} does not continue texts, it answers them (its task is "
            f"{config.task}): use `keras-drill translate`"
        )
    return config


def check_answers(folder: str, checkpoint: int | str | None) -> RunConfig:
    """Makes sure that a folder is that of a run whose model answers sources."""
    (config,) = check_runs([folder], checkpoint)
    if not config.reads_sources:
        raise RunError(
            f"the model of {folder} does not answer texts, it continues them (its task is "
            f"{config.task}): use `keras-drill generate`"
        )
    return config


def folder_name(name: str) -> str:
    """A `type` for `add_argument`: the name of a folder in another one, which it cannot leave.

    Example:

    >>> folder_name("../elsewhere")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be the name of a folder, not a path: '../elsewhere'
    """
    if Path(name).name != name or name in ("", ".", ".."):
        raise argparse.ArgumentTypeError(f"must be the name of a folder, not a path: {name!r}")
    if not name.isprintable():
        raise argparse.ArgumentTypeError(f"must have no control characters in it: {name!r}")
    return name


def some_path(path: str) -> str:
    """A `type` for `add_argument`: a path; what an unset variable of a shell leaves is none.

    Example:

    >>> some_path("")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be a path, not empty
    """
    if not path:
        raise argparse.ArgumentTypeError("must be a path, not empty")
    return path


def absolute(data: str) -> str:
    """The path of a text from anywhere; the name of a data set stays as it is."""
    return data if data.startswith(_DATA_SET) else os.path.abspath(data)


def check_data(data: str | None) -> None:
    """Makes sure that there is something where `--data` says."""
    if data is None or data.startswith(_DATA_SET):
        return
    if not data or not Path(data).exists():
        raise FileNotFoundError(f"--data {data!r}: there is nothing there")


def check_text(data: Sequence[str] | None) -> list[str] | None:
    """The paths of one text, of `--data` given once or several times, from anywhere."""
    if data is None:
        return None
    for path in data:
        check_data(path)
    return [absolute(path) for path in data]


def output_file(option: str, path: str | os.PathLike) -> Path:
    """The place of a file that will be written; its folder is made, or the place refused, now."""
    path = Path(path)
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no ordinary file"
        raise ConfigError(f"{option} must be a file, and {path} is {what}")
    output_folder(option, path.parent)
    return path


def output_folder(option: str, path: str | os.PathLike) -> Path:
    """A folder that will be written to, made where it is missing."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"{option} cannot be there: {path} is not a folder") from None
    except OSError as error:
        raise ConfigError(f"{option} cannot be there: {path}: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} cannot be there: nothing may be written in {path}")
    return path


def report_file(
    args: argparse.Namespace, folders: Sequence[str], name: str, about: Sequence[str] = ()
) -> Path:
    """Where a page goes: `--report`, in the folder of the only run, or beside several.

    Args:
        args: The arguments, with `--report`.
        folders: The runs.
        name: Name of the page about the runs themselves.
        about: What else the page is about, see `other_than_run`. Its name says so, and has a number
            where there is such a page already, which is not overwritten.
    """
    if args.report is not None:
        return output_file("--report", args.report)
    folder = Path(folders[0])
    if len(folders) > 1:
        folder = folder.resolve().parent
    if not about:
        return output_file("the report", folder / name)
    stem, suffix = os.path.splitext(name)
    stem = re.sub(r"[^\w.-]+", "-", "-".join([stem, *about]))
    numbers = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    paths = (folder / f"{stem}{number}{suffix}" for number in numbers)
    return output_file("the report", next(path for path in paths if not path.exists()))


def other_than_run(args: argparse.Namespace) -> list[str]:
    """What a page is about that is not the best model of a run on its own corpus."""
    names = [Path(path).name for path in args.data or ()]
    return names + ([] if args.checkpoint is None else [f"checkpoint-{args.checkpoint}"])
