"""`keras-drill score`."""

import argparse
import sys
from pathlib import Path

from keras_drill.training.config_error import ConfigError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "score",
        help="log-probability per word and perplexity of texts",
        description=(
            "Prints the natural log-probability of every word of a text under the best model of a\n"
            "run, and the perplexity. Words that the model does not know are shown as <unk>, and\n"
            "every line counts with its <eos>."
        ),
        epilog=(
            "Examples:\n"
            '  keras-drill score runs/a "the first sentence" "the second"\n'
            "  keras-drill score runs/a --file text.txt --total\n"
            '  keras-drill score runs/kerbs "the bank of the river" --senses'
        ),
    )
    parser.add_argument("folder", metavar="RUN", help="folder of the run")
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="texts to score")
    parser.add_argument(
        "--file", metavar="FILE", help="score a file; '-' is the standard input, also the default"
    )
    parser.add_argument("--total", action="store_true", help="only the sum, not every word")
    parser.add_argument(
        "--senses",
        action="store_true",
        help="also how probable each sense of each word is (models whose words have senses)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    texts = _texts(args)
    if args.senses and args.total:
        raise ConfigError("give --senses or --total, not both")

    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    from keras_drill.decoding import GreedySampler
    from keras_drill.training.loaded_run import LoadedRun
    from keras_drill.training.run_error import RunError
    from keras_drill.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder))
    text_model = loaded.text_model(GreedySampler(), seed=0, max_tokens=1)
    if args.senses and not text_model.has_senses:
        raise RunError(
            f"the words of {args.folder} have no senses: --senses is for models that were trained "
            "with head.kind = 'kerbs' or 'drill-kerbs'"
        )
    for text in texts:
        text = tf.constant([text])
        scores = {name: one.numpy()[0] for name, one in text_model.score(text).items()}
        notes = _sense_notes(text_model.senses(text)) if args.senses else [""] * scores["lengths"]
        if not args.total:
            for word, log_prob, note in zip(
                scores["words"], scores["log_probs"], notes, strict=True
            ):
                print(f"{log_prob:10.4f}  {word.decode()}{note}")
        print(
            f"{scores['total_log_probs']:10.4f}  total of {scores['lengths']} words, "
            f"perplexity {scores['perplexities']:.4f}"
        )
    return 0


def _sense_notes(answer: dict) -> list[str]:
    """What stands after each word: its senses' ids and probabilities."""
    return [
        "".join(
            f"  {sense}:{probability:.3f}"
            for sense, probability in zip(senses, probabilities, strict=True)
            if sense >= 0
        )
        for senses, probabilities in zip(
            answer["senses"].numpy()[0], answer["probabilities"].numpy()[0], strict=True
        )
    ]


def _texts(args: argparse.Namespace) -> list[str]:
    if args.texts and args.file:
        raise ConfigError("give texts or --file, not both")
    if args.texts:
        return args.texts
    name = args.file or "-"
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: expected UTF-8 text ({error.reason})") from None
    if not text.strip():
        raise ValueError(f"{name}: there is no text to score")
    return [text]
