"""Arguments that several commands share, and checks of their values before any work."""

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
MAX_TOKENS = 50  # default maximum length of a continuation
_SAMPLER_SETTINGS = ("sampler", "temperature", "k", "p", "min_p", "seed")
_DATA_SET = "tfds:"  # prefix of the name of a data set, which may be given instead of a path


def whole_number(at_least: int, at_most: int = MAX_INT) -> Callable[[str], int]:
    """Returns a `type` for `add_argument` that accepts whole numbers in a range.

    Example:

    >>> whole_number(1)("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be at least 1. Received: 0
    """

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"must be a whole number. Received: {text!r}"
            ) from None
        if value < at_least:
            raise argparse.ArgumentTypeError(f"must be at least {at_least}. Received: {value}")
        if value > at_most:
            raise argparse.ArgumentTypeError(f"must be at most {at_most}. Received: {value}")
        return value

    return convert


def number(
    above: float | None = None,
    below: float = math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Callable:
    """Returns a `type` for `add_argument` that accepts finite numbers in a range.

    Args:
        above: Exclusive lower limit; if given, `at_least` is ignored.
        below: Exclusive upper limit.
        at_least: Inclusive lower limit.
        at_most: Inclusive upper limit.
    """
    limits = [f"at least {at_least:g}" if above is None else f"above {above:g}"]
    limits += [f"below {below:g}"] if below < math.inf else []
    limits += [f"at most {at_most:g}"] if at_most < math.inf else []

    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a number. Received: {text!r}") from None
        is_large_enough = value >= at_least if above is None else value > above
        if not (is_large_enough and value < below and value <= at_most and math.isfinite(value)):
            if value == math.inf:
                raise argparse.ArgumentTypeError("must be finite. Received: inf")
            raise argparse.ArgumentTypeError(f"must be {' and '.join(limits)}. Received: {value}")
        return value

    return convert


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the argument `RUN`, the folder of one run."""
    parser.add_argument("folder", metavar="RUN", help="folder of the run")


def add_checkpoint_argument(parser: argparse.ArgumentParser) -> None:
    """Adds `--checkpoint`."""
    parser.add_argument(
        "--checkpoint",
        type=_checkpoint,
        metavar="STEP|last",
        help="use the model of the checkpoint of this step, or of the last checkpoint (default: "
        "the best model)",
    )


def add_text_and_report_arguments(parser: argparse.ArgumentParser, report: str) -> None:
    """Adds `--data` and `--report`.

    Args:
        parser: The parser of a command.
        report: Description of the default path of the page, for the help text.
    """
    parser.add_argument(
        "--data",
        action="append",
        metavar="PATH",
        help="text to use instead of the corpus of the run, without splitting it: a file, or a "
        "folder with some of the splits train, valid and test; for pairs of texts give --data "
        "twice, with a file of sources and a file of targets",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help=f"path of the HTML page (default: {report}; with --data or --checkpoint, the file "
        "name contains their values, and existing pages are not overwritten)",
    )


def add_sampling_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--sampler`, its settings, `--max-tokens` and `--stop`."""
    group = add_sampler_arguments(parser, "sampling of words", default)
    group.add_argument(
        "--max-tokens",
        type=whole_number(1, 1_000_000),
        metavar="N",
        help=f"maximum number of words to add (default: {MAX_TOKENS})",
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
        help="sampling method; greedy takes the most probable word (default: %(default)s)",
    )
    group.add_argument(
        "--temperature",
        type=number(above=0),
        default=1.0,
        metavar="T",
        help="sampling temperature: below 1, more probable words are preferred; above 1, texts "
        "vary more (default: %(default)s)",
    )
    group.add_argument(
        "--k",
        type=whole_number(1),
        default=40,
        metavar="K",
        help="for top-k: sample from the K most probable words (default: %(default)s)",
    )
    group.add_argument(
        "--p",
        type=number(above=0, at_most=1),
        default=0.9,
        metavar="P",
        help="for top-p: sample from the most probable words with a total probability of P "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--min-p",
        type=number(above=0, at_most=1),
        default=0.1,
        metavar="P",
        help="for min-p: sample from the words at least P times as probable as the most probable "
        "word (default: %(default)s)",
    )
    group.add_argument(
        "--seed",
        type=whole_number(0, 2**32 - 1),
        default=0,
        metavar="S",
        help="random seed of the sampling (default: %(default)s)",
    )
    return group


def sampler_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the values of the arguments of `add_sampler_arguments`, by name."""
    return {name: getattr(args, name) for name in _SAMPLER_SETTINGS}


def _checkpoint(text: str) -> int | str:
    return text if text == "last" else whole_number(0)(text)


def _stop_string(text: str) -> str:
    try:
        text = os.fsencode(text).decode("utf-8")
    except UnicodeDecodeError:
        raise argparse.ArgumentTypeError(
            f"must be UTF-8. Received: {os.fsencode(text)!r}"
        ) from None
    if not text:
        raise argparse.ArgumentTypeError("must be a non-empty string. Received: ''")
    return text


def check_runs(folders: Sequence[str], checkpoint: int | str | None) -> list[RunConfig]:
    """Returns the options of runs.

    Raises:
        RunError: A folder is not the folder of a run with a model.
    """
    configs = []
    for folder in folders:
        path = Path(folder)
        if not path.is_dir():
            what = "is a file" if path.exists() else "does not exist"
            hint = "; give each file of a text with its own --data" if path.exists() else ""
            raise RunError(
                f"RUN must be the folder of a run{hint}. Received: {folder}, which {what}"
            )
        if not (path / "config.toml").is_file():
            raise RunError(
                "RUN must be the folder of a run, which contains the file config.toml. "
                f"Received: {folder}"
            )
        configs.append(load_config(path / "config.toml", is_run=True))
        if checkpoint is None and not (path / "model.keras").is_file():
            raise RunError(
                f"{folder} has no model yet; `keras-drill train` writes a model after the first "
                "epoch"
            )
    return configs


def check_continues(folder: str, checkpoint: int | str | None) -> RunConfig:
    """Returns the options of a run whose model continues texts; otherwise raises `RunError`."""
    (config,) = check_runs([folder], checkpoint)
    if config.reads_sources:
        raise RunError(
            f"the model of {folder} does not continue texts (its task is {config.task}): use "
            "`keras-drill translate`"
        )
    return config


def check_answers(folder: str, checkpoint: int | str | None) -> RunConfig:
    """Returns the options of a run whose model has sources; otherwise raises `RunError`."""
    (config,) = check_runs([folder], checkpoint)
    if not config.reads_sources:
        raise RunError(
            f"the model of {folder} does not translate or answer texts (its task is "
            f"{config.task}): use `keras-drill generate`"
        )
    return config


def folder_name(name: str) -> str:
    """Returns a folder name unchanged, and rejects paths. A `type` for `add_argument`.

    Example:

    >>> folder_name("../elsewhere")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be the name of a folder, not a path. Received: '../elsewhere'
    """
    if Path(name).name != name or name in ("", ".", ".."):
        raise argparse.ArgumentTypeError(
            f"must be the name of a folder, not a path. Received: {name!r}"
        )
    if not name.isprintable():
        raise argparse.ArgumentTypeError(f"must not contain control characters. Received: {name!r}")
    return name


def some_path(path: str) -> str:
    """Returns a path unchanged, and rejects an empty path. A `type` for `add_argument`.

    A shell variable that is not set gives an empty argument.

    Example:

    >>> some_path("")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be a non-empty path. Received: ''
    """
    if not path:
        raise argparse.ArgumentTypeError("must be a non-empty path. Received: ''")
    return path


def absolute(data: str) -> str:
    """Returns the absolute path of a text. The name of a data set, `tfds:NAME`, is unchanged."""
    return data if data.startswith(_DATA_SET) else os.path.abspath(data)


def check_data(data: str | None) -> None:
    """Raises `FileNotFoundError` if the path of `--data` does not exist."""
    if data is None or data.startswith(_DATA_SET):
        return
    if not data or not Path(data).exists():
        raise FileNotFoundError(f"--data must be an existing path. Received: {data!r}")


def check_text(data: Sequence[str] | None) -> list[str] | None:
    """Returns the absolute paths of the values of `--data`; `None` without `--data`.

    Raises:
        FileNotFoundError: A path does not exist.
    """
    if data is None:
        return None
    for path in data:
        check_data(path)
    return [absolute(path) for path in data]


def output_file(option: str, path: str | os.PathLike) -> Path:
    """Checks that a file can be written, and creates its folder if that is missing.

    Args:
        option: The option that names the file, for messages.
        path: The path of the file.

    Returns:
        The path of the file.

    Raises:
        ConfigError: The path is not a regular file, or its folder is not writable.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "not a regular file"
        raise ConfigError(f"{option} must be a file. Received: {path}, which is {what}")
    output_folder(option, path.parent)
    return path


def output_folder(option: str, path: str | os.PathLike) -> Path:
    """Creates a folder if it is missing, and returns its path.

    Raises:
        ConfigError: The path is not a folder, or the folder is not writable.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"{option} cannot be written: {path} is not a folder") from None
    except OSError as error:
        raise ConfigError(f"{option} cannot be written: {path}: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} cannot be written: no permission to write in {path}")
    return path


def report_file(
    args: argparse.Namespace, folders: Sequence[str], name: str, about: Sequence[str] = ()
) -> Path:
    """Returns the path of the HTML page of a command, and creates its folder.

    The path is `--report` if given. Otherwise the page is in the folder of a single run, or beside
    the folders of several runs.

    Args:
        args: The arguments of the command, with `--report`.
        folders: The runs.
        name: Default name of the page.
        about: Parts to append to the name, see `other_than_run`. If a page with this name exists,
            a number is appended too, so that no page is overwritten.
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
    """Returns parts of a page's name for `--data` and `--checkpoint`, if they are given."""
    names = [Path(path).name for path in args.data or ()]
    return names + ([] if args.checkpoint is None else [f"checkpoint-{args.checkpoint}"])
