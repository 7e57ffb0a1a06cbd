"""`keras-drill evaluate`."""

import argparse
from pathlib import Path


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
    parser.add_argument(
        "--data", metavar="PATH", help="another text than the one the runs were trained on"
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="the report (default: report.html in the folder of the only run, or beside several)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    from keras_drill.training.compare_runs import compare_runs
    from keras_drill.training.run_folder import RunFolder

    folders = [RunFolder(folder) for folder in args.folders]
    parent = folders[0].path if len(folders) == 1 else folders[0].path.resolve().parent
    report = Path(args.report) if args.report else parent / "report.html"
    compare_runs(folders, report, data=args.data)
    return 0
