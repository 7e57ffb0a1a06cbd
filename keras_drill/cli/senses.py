"""`keras-drill senses`."""

import argparse
from pathlib import Path

from keras_drill.training.config_error import ConfigError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "senses",
        help="the senses of words in a model with a KerBS output layer",
        description=(
            "Shows which words of the best model of a run have how many senses, and of some\n"
            "words, how each sense is used: its share, its kernel parameter, the words nearest to\n"
            "it, and the contexts in which it is most probable. Prints tables and writes one HTML\n"
            "page with plots of context vectors, kernels and their parameters."
        ),
        epilog="Example:\n  keras-drill senses runs/kerbs bank interest monday --tokens 500000",
    )
    parser.add_argument("folder", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="words to look at (default: the most frequent of those with the most senses)",
    )
    parser.add_argument(
        "--data", metavar="PATH", help="another text than the one the run was trained on"
    )
    parser.add_argument(
        "--split",
        choices=("train", "valid", "test"),
        default="train",
        help="the part of the text to read (default: %(default)s)",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=200_000,
        metavar="N",
        help="how much of it to read, from its beginning (default: %(default)s)",
    )
    parser.add_argument(
        "--nearest",
        type=int,
        default=5,
        metavar="N",
        help="words to show near to a sense (default: %(default)s)",
    )
    parser.add_argument(
        "--contexts",
        type=int,
        default=3,
        metavar="N",
        help="contexts to show of a sense (default: %(default)s)",
    )
    parser.add_argument(
        "--report",
        metavar="FILE.html",
        help="the page (default: senses.html in the folder of the run)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    for name in ("tokens", "nearest", "contexts"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name} must be at least 1, not {getattr(args, name)}")

    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    from keras_drill.training.examine_senses import examine_senses
    from keras_drill.training.run_folder import RunFolder

    folder = RunFolder(args.folder)
    examine_senses(
        folder,
        Path(args.report) if args.report else folder.path / "senses.html",
        words=args.words,
        data=args.data,
        split=args.split,
        tokens=args.tokens,
        nearest=args.nearest,
        contexts=args.contexts,
    )
    return 0
