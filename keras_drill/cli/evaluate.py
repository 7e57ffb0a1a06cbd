"""`keras-drill evaluate`."""

import argparse

from keras_drill.cli.arguments import (
    add_checkpoint_argument,
    add_text_and_report_arguments,
    check_data,
    check_runs,
    report_file,
)


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "evaluate",
        help="judge one or several models and write a report",
        description=(
            "Prints the perplexities of the best models of runs and writes a report, one HTML\n"
            "page with learning curves, samples, and, for two runs or more with the same words,\n"
            "what the second is better at than the first, by word frequency."
        ),
        epilog="Example:\n  keras-drill evaluate runs/tied runs/drill --report comparison.html",
    )
    parser.add_argument("folders", nargs="+", metavar="RUN", help="folders of the runs")
    add_checkpoint_argument(parser)
    add_text_and_report_arguments(parser, "report.html in the folder of the only run, or beside")
    return parser


def run(args: argparse.Namespace) -> int:
    check_runs(args.folders, args.checkpoint)
    check_data(args.data)
    report = report_file(args, args.folders, "report.html")

    from keras_drill.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.training.compare_runs import compare_runs
    from keras_drill.training.run_folder import RunFolder

    compare_runs(
        [RunFolder(folder) for folder in args.folders],
        report,
        data=args.data,
        checkpoint=args.checkpoint,
    )
    return 0
