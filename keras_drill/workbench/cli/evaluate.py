"""`keras-drill evaluate`."""

import argparse

from keras_drill.workbench.cli.adaptation_arguments import (
    add_adaptation_arguments,
    check_adapts,
    given_adaptation,
)
from keras_drill.workbench.cli.arguments import (
    add_checkpoint_argument,
    add_text_and_report_arguments,
    check_runs,
    check_text,
    other_than_run,
    output_file,
    report_file,
)


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "evaluate",
        help="evaluate one or several models, and write a report",
        description=(
            "Prints the perplexities of the best models of runs, and writes an HTML page with\n"
            "learning curves and samples. For several runs with the same vocabulary, the page\n"
            "also compares the models by word frequency.\n"
            "The models are evaluated on the validation and test texts of the runs, or on --data."
        ),
        epilog=(
            "Examples:\n"
            "  keras-drill evaluate runs/tied runs/drill --report comparison.html\n"
            "  keras-drill evaluate runs/tied --data news.txt --json news.json\n"
            "  keras-drill evaluate runs/de-en --data news.de --data news.en\n"
            "  keras-drill evaluate runs/tied --dynamic --cache"
        ),
    )
    parser.add_argument("folders", nargs="+", metavar="RUN", help="folders of the runs")
    add_checkpoint_argument(parser)
    add_text_and_report_arguments(
        parser, "report.html in the folder of a single run, or beside the folders of several runs"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="file to which all metrics are also written, as JSON"
    )
    add_adaptation_arguments(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    configs = check_runs(args.folders, args.checkpoint)
    adaptation = given_adaptation(args)
    about = other_than_run(args)
    if adaptation is not None:
        check_adapts(args, configs)
        about += [name for name in ("dynamic", "cache") if getattr(args, name)]
    data = check_text(args.data)
    report = report_file(args, args.folders, "report.html", about)
    figures = None if args.json is None else output_file("--json", args.json)

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.training.compare_runs import compare_runs
    from keras_drill.workbench.training.run_folder import RunFolder

    compare_runs(
        [RunFolder(folder) for folder in args.folders],
        report,
        data=data,
        checkpoint=args.checkpoint,
        figures=figures,
        adaptation=adaptation,
    )
    return 0
