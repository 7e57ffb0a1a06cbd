"""`keras-drill induce-senses`."""

import argparse
from pathlib import Path

from keras_drill.workbench.cli.arguments import check_data, output_folder, report_file, whole_number
from keras_drill.workbench.tasks.errors import ConfigError, RunError

_FILE = "induced-senses.json"


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "induce-senses",
        help="find senses of words in a text by a pretrained encoder",
        description=(
            "Reads the contexts of words by a pretrained encoder, with the word masked, trains a\n"
            "KerBS output layer on them, and shows which senses it found: their share, the words\n"
            "near to them, and contexts. Prints tables and writes the page of `keras-drill\n"
            "senses`, which shows the folder again. States of contexts are kept in the folder: a\n"
            "second call with other options computes but those that it needs more."
        ),
        epilog=(
            "Example:\n  keras-drill induce-senses bank crane --data wiki.txt "
            "--encoder bert_small_en_uncased --run runs/nouns"
        ),
    )
    parser.add_argument("words", nargs="+", metavar="WORD", help="words to find senses of")
    parser.add_argument("--data", required=True, metavar="TEXT", help="text file, one text a line")
    parser.add_argument(
        "--encoder",
        required=True,
        metavar="PRESET",
        help="an encoder of keras-hub: its name, or a folder, also in Hugging Face's format",
    )
    parser.add_argument("--run", required=True, dest="folder", metavar="FOLDER", help="for results")
    parser.add_argument("--report", metavar="FILE.html", help="the page (default: in the folder)")
    for name, default, least, text in (
        ("senses", 3, 1, "senses of each word"),
        ("most", 1000, 3, "most contexts of a word to read, drawn from all"),
        ("others", 400, 1, "other frequent words to tell the words from"),
        ("window", 32, 1, "most tokens before and after a word to read"),
        ("steps", 400, 1, "training steps of 512 contexts"),
        ("nearest", 5, 1, "words to show near to a sense"),
        ("contexts", 3, 1, "contexts to show of a sense"),
        ("seed", 0, 0, "of the contexts drawn, and of training"),
    ):
        parser.add_argument(
            f"--{name}",
            type=whole_number(least),
            default=default,
            metavar="N",
            help=f"{text} (default: %(default)s)",
        )
    return parser


def run(args: argparse.Namespace) -> int:
    check_data(args.data)
    folder = output_folder("--run", args.folder)
    if not (folder / _FILE).exists() and set(folder.iterdir()) - {folder / "contexts"}:
        raise ConfigError(
            f"{folder} holds files that are no induced senses; give --run a new or an empty folder"
        )
    report = report_file(args, [args.folder], "senses.html")

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.data.text_lines import TextLines
    from keras_drill.workbench.sense_induction import TextEncoder, induce_senses

    lines = [line.decode("utf-8") for line in TextLines(args.data)]
    try:
        encoder = TextEncoder.from_preset(args.encoder, args.window)
    except (ImportError, FileNotFoundError, ValueError) as error:
        raise RunError(f"--encoder {args.encoder}: {error}") from error
    induced = induce_senses(
        args.words,
        lines,
        encoder,
        senses=args.senses,
        most=args.most,
        others=args.others,
        steps=args.steps,
        seed=args.seed,
        cache=folder / "contexts",
        facts={"encoder": Path(args.encoder).name, "text": Path(args.data).name},
    )
    induced.save(folder)
    induced.examine(folder.resolve().name, report, nearest=args.nearest, contexts=args.contexts)
    return 0
