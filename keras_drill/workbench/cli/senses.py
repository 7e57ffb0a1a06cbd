"""`keras-drill senses`."""

import argparse
from pathlib import Path

from keras_drill.workbench.cli.arguments import (
    add_checkpoint_argument,
    add_run_argument,
    add_text_and_report_arguments,
    check_runs,
    check_text,
    other_than_run,
    report_file,
    whole_number,
)
from keras_drill.workbench.cli.texts import TextReader
from keras_drill.workbench.tasks.errors import RunError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "senses",
        help="show the senses of words in a model with several senses per word",
        description=(
            "Shows how many senses the words of the best model of a run have. For some words,\n"
            "shows each sense: its share, its kernel parameter, its nearest words, and contexts\n"
            "in which the sense is the most probable. Prints tables and writes an HTML page with\n"
            "plots of context vectors, kernels and their parameters."
        ),
        epilog="Example:\n  keras-drill senses runs/kerbs bank interest monday --tokens 500000",
    )
    add_run_argument(parser)
    parser.add_argument(
        "words",
        nargs="*",
        default=[],
        metavar="WORD",
        help="words to show (default: content words whose senses depend most on the context)",
    )
    add_checkpoint_argument(parser)
    add_text_and_report_arguments(parser, "senses.html in the folder of the run")
    parser.add_argument(
        "--split",
        choices=("train", "valid", "test"),
        help="split of the text to read (default: train, or the first split of --data)",
    )
    parser.add_argument(
        "--tokens",
        type=whole_number(1),
        default=200_000,
        metavar="N",
        help="number of tokens to read from the beginning of the text (default: %(default)s)",
    )
    parser.add_argument(
        "--nearest",
        type=whole_number(1),
        default=5,
        metavar="N",
        help="number of nearest words to show for each sense (default: %(default)s)",
    )
    parser.add_argument(
        "--contexts",
        type=whole_number(1),
        default=3,
        metavar="N",
        help="number of contexts to show for each sense (default: %(default)s)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    if (Path(args.folder) / "induced-senses.json").is_file():
        return _run_induced(args)
    (config,) = check_runs([args.folder], args.checkpoint)
    if not config.head.has_senses:
        raise RunError(
            "RUN must have several senses per word, that is head.kind = 'kerbs' or 'drill-kerbs'. "
            f"Received: {args.folder}, whose head.kind is {config.head.kind!r}"
        )
    data = check_text(args.data)
    reader = TextReader()
    words = reader.arguments(args.words)
    report = report_file(args, [args.folder], "senses.html", other_than_run(args))

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.training.examine_senses import examine_senses
    from keras_drill.workbench.training.run_folder import RunFolder

    examine_senses(
        RunFolder(args.folder),
        report,
        words=list(dict.fromkeys(word.content for word in words if word.content is not None)),
        data=data,
        checkpoint=args.checkpoint,
        split=args.split,
        tokens=args.tokens,
        nearest=args.nearest,
        contexts=args.contexts,
    )
    return 1 if reader.passed_over else 0


def _run_induced(args: argparse.Namespace) -> int:
    """Shows senses from a folder that `keras-drill induce-senses` wrote."""
    if args.data is not None:
        raise RunError(
            f"--data cannot be used with {args.folder}, whose senses come from the text of "
            "`keras-drill induce-senses`; for another text, call that command again"
        )
    reader = TextReader()
    words = [text.content for text in reader.arguments(args.words) if text.content is not None]
    report = report_file(args, [args.folder], "senses.html")

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.sense_induction import InducedSenses

    InducedSenses.load(args.folder).examine(
        Path(args.folder).resolve().name,
        report,
        list(dict.fromkeys(words)),
        args.nearest,
        args.contexts,
    )
    return 1 if reader.passed_over else 0
