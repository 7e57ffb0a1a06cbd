"""`keras-drill induce-senses`."""

import argparse
from pathlib import Path

from keras_drill.workbench.cli.arguments import check_data, output_folder, report_file, whole_number
from keras_drill.workbench.tasks.errors import ConfigError, RunError

_FILE = "induced-senses.json"


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "induce-senses",
        help="find senses of words in a text with a pretrained encoder",
        description=(
            "Encodes the contexts of words with a pretrained encoder that masks the word. Then\n"
            "trains a KerBS output layer on the states, and shows the senses that were found:\n"
            "share, nearest words and contexts. Prints tables and writes an HTML page, which\n"
            "`keras-drill senses FOLDER` writes again. The encoder's states are cached in the\n"
            "folder, so a second call with other options computes only missing states."
        ),
        epilog=(
            "Example:\n  keras-drill induce-senses bank crane --data wiki.txt "
            "--encoder bert_small_en_uncased --run runs/nouns"
        ),
    )
    parser.add_argument("words", nargs="+", metavar="WORD", help="words whose senses are searched")
    parser.add_argument("--data", required=True, metavar="TEXT", help="file with one text per line")
    parser.add_argument(
        "--encoder",
        required=True,
        metavar="PRESET",
        help="an encoder of keras-hub: the name of a preset, or a folder in the format of "
        "keras-hub or Hugging Face",
    )
    parser.add_argument(
        "--run", required=True, dest="folder", metavar="FOLDER", help="folder for the results"
    )
    parser.add_argument(
        "--report", metavar="FILE.html", help="path of the page (default: senses.html in FOLDER)"
    )
    for name, default, least, text in (
        ("senses", 3, 1, "number of senses of each word"),
        ("most", 1000, 3, "maximum number of contexts of each word, drawn at random"),
        (
            "others",
            400,
            1,
            "number of other frequent words from which the model learns to distinguish the words",
        ),
        ("window", 32, 1, "maximum number of tokens to read on either side of a word"),
        ("steps", 400, 1, "number of training steps, with 512 contexts each"),
        ("nearest", 5, 1, "number of nearest words to show for each sense"),
        ("contexts", 3, 1, "number of contexts to show for each sense"),
        ("seed", 0, 0, "seed of the drawn contexts and of training"),
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
            f"{folder} holds files but no induced senses; give --run a new or an empty folder"
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
