"""`keras-drill runs`."""

import argparse
from pathlib import Path

from keras_drill.workbench.tasks.errors import RunError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "runs",
        help="list runs with their progress and perplexities",
        description=(
            "Lists the runs in a folder and its subfolders, with output layer, state (new,\n"
            "training, interrupted, finished, stopped early, or damaged), epochs and perplexities."
        ),
        epilog="Examples:\n  keras-drill runs\n  keras-drill runs runs/demo",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        default="runs",
        metavar="FOLDER",
        help="folder that contains the runs (default: %(default)s)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    if not Path(args.folder).is_dir():
        raise RunError(f"FOLDER must be a folder that contains runs. Received: {args.folder}")

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.training.list_runs import list_runs, runs_table

    runs = list_runs(args.folder)
    print(runs_table(runs) if runs else f"there are no runs in {args.folder}")
    return 0
