"""`keras-drill analyze`."""

import argparse
from pathlib import Path

from keras_drill.training.config_error import ConfigError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "analyze",
        help="rank of the log-probabilities, words that are never chosen, comparison by frequency",
        description=(
            "Analyses the output layers of the best models of runs: the numerical rank of their\n"
            "log-probabilities over a text, the words that can never be the most probable, and,\n"
            "for two runs or more with the same words, what the others are better at than the\n"
            "first, by word frequency. Prints tables and writes one HTML page with plots."
        ),
        epilog="Example:\n  keras-drill analyze runs/tied runs/drill --tokens 4096",
    )
    parser.add_argument("folders", nargs="+", metavar="RUN", help="folders of the runs")
    parser.add_argument(
        "--data", metavar="PATH", help="another text than the one the runs were trained on"
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=2048,
        metavar="N",
        help="tokens that the rank is measured on; no greater rank is found (default: %(default)s)",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-12,
        help="singular values above this part of the greatest count (default: %(default)s)",
    )
    parser.add_argument(
        "--bound",
        type=float,
        default=100.0,
        help="search hidden states with components up to this; those of an LSTM or a GRU are "
        "within 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--max-programs",
        type=int,
        metavar="N",
        help="most words per run to decide by a linear program (default: all that need one)",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="the page (default: analysis.html in the folder of the only run, or beside several)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    _check(args)

    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    from keras_drill.training.analyze_runs import analyze_runs
    from keras_drill.training.run_folder import RunFolder

    folders = [RunFolder(folder) for folder in args.folders]
    parent = folders[0].path if len(folders) == 1 else folders[0].path.resolve().parent
    analyze_runs(
        folders,
        Path(args.report) if args.report else parent / "analysis.html",
        data=args.data,
        tokens=args.tokens,
        tolerance=args.tolerance,
        bound=args.bound,
        max_programs=args.max_programs,
    )
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.tokens < 2:
        raise ConfigError(f"--tokens must be at least 2, not {args.tokens}")
    if not 0 < args.tolerance < 1:
        raise ConfigError(f"--tolerance must be between 0 and 1, not {args.tolerance}")
    if args.bound <= 0:
        raise ConfigError(f"--bound must be above 0, not {args.bound}")
    if args.max_programs is not None and args.max_programs < 0:
        raise ConfigError(f"--max-programs must not be negative, not {args.max_programs}")
