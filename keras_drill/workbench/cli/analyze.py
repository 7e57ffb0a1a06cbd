"""`keras-drill analyze`."""

import argparse

from keras_drill.workbench.cli.arguments import (
    add_checkpoint_argument,
    add_text_and_report_arguments,
    check_runs,
    check_text,
    number,
    other_than_run,
    report_file,
    whole_number,
)


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "analyze",
        help="analyze output layers: rank, words never chosen, differences by word frequency",
        description=(
            "Analyzes the output layers of the best models of runs: the numerical rank of their\n"
            "log-probabilities over a text, and the words that can never be the most probable.\n"
            "For several runs with the same vocabulary, also compares the first run with the\n"
            "others by word frequency. Prints tables and writes an HTML page with plots."
        ),
        epilog="Example:\n  keras-drill analyze runs/tied runs/drill --tokens 4096",
    )
    parser.add_argument("folders", nargs="+", metavar="RUN", help="folders of the runs")
    add_checkpoint_argument(parser)
    add_text_and_report_arguments(
        parser, "analysis.html in the folder of a single run, or beside the folders of several runs"
    )
    parser.add_argument(
        "--tokens",
        type=whole_number(2),
        default=2048,
        metavar="N",
        help="number of tokens on which the rank is measured; the measured rank is at most N "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--tolerance",
        type=number(above=0, below=1),
        default=1e-12,
        metavar="T",
        help="the rank is the number of singular values above T times the largest one (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--bound",
        type=number(above=0),
        default=100.0,
        metavar="B",
        help="search among hidden states whose components are from -B to B; components of an LSTM "
        "or a GRU are from -1 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--max-programs",
        type=whole_number(0),
        metavar="N",
        help="maximum number of linear programs per run; each decides whether one word can be the "
        "most probable (default: one for every word that needs it)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    check_runs(args.folders, args.checkpoint)
    data = check_text(args.data)
    report = report_file(args, args.folders, "analysis.html", other_than_run(args))

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.training.analyze_runs import analyze_runs
    from keras_drill.workbench.training.run_folder import RunFolder

    analyze_runs(
        [RunFolder(folder) for folder in args.folders],
        report,
        data=data,
        checkpoint=args.checkpoint,
        tokens=args.tokens,
        tolerance=args.tolerance,
        bound=args.bound,
        max_programs=args.max_programs,
    )
    return 0
