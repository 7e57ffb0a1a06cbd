"""`keras-drill translate`."""

import argparse
import json
import math
import sys
from typing import Any, TextIO

from keras_drill.cli.arguments import (
    add_checkpoint_argument,
    add_run_argument,
    check_answers,
)
from keras_drill.cli.search_arguments import add_search_arguments, search_changes
from keras_drill.cli.texts import (
    Text,
    TextReader,
    add_output_arguments,
    answers_to,
    batches,
    check_output,
    escaped,
)

_COLUMNS = ("number", "rank", "score", "log_prob", "text")
_ROWS = 512  # that are sorted by their lengths, to be answered in batches of like ones


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "translate",
        aliases=["answer"],
        help="let a model translate, or answer, texts",
        description=(
            "Lets the best model of a run translate texts, or answer them if it was trained on\n"
            "dialogs: a line for a line, in their order, the empty ones too."
        ),
        epilog=(
            "Examples:\n"
            "  keras-drill translate runs/de-en < test.de > test.en\n"
            '  keras-drill translate runs/de-en "Ein Hund läuft." --n-best 3 --format tsv\n'
            "  keras-drill translate runs/de-en --num-beams 8 --no-repeat-ngram 3 < test.de\n"
            "  keras-drill translate runs/de-en --format json --output answers.jsonl < test.de"
        ),
    )
    add_run_argument(parser)
    add_checkpoint_argument(parser)
    parser.add_argument(
        "sources",
        nargs="*",
        default=[],
        metavar="TEXT",
        help="texts to translate; without any, the lines of the standard input",
    )
    add_search_arguments(parser)
    add_output_arguments(parser, ("text", "tsv", "json"))
    return parser


def run(args: argparse.Namespace) -> int:
    config = check_answers(args.folder, args.checkpoint)
    changes = search_changes(args, config)
    check_output(args)
    reader = TextReader()
    blocks = [reader.arguments(args.sources)] if args.sources else reader.lines("-")

    from keras_drill.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.tasks.sequence_to_sequence.answer import answer_all, warn_of_cut_sources
    from keras_drill.training.loaded_run import LoadedRun
    from keras_drill.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder), args.checkpoint, changes)
    task = loaded.answering_task
    translator = task.translator(loaded.model, loaded.words, task.make_search())
    progress = _Progress(shown=args.output is not None or not sys.stdout.isatty())
    cut = 0
    with answers_to(args.output) as file:
        if args.format == "tsv":
            file.write("\t".join(_COLUMNS) + "\n")
        for batch in batches(blocks, most=_ROWS):
            answers = answer_all(translator, [text.content or "" for text in batch])
            cut += sum(answer.is_cut for answer in answers)
            for text, answer in zip(batch, answers, strict=True):
                _write(file, args.format, text, answer)
            file.flush()
            progress.add(len(batch))
    progress.end()
    warn_of_cut_sources(cut, progress.done, config.data.max_length)
    return 1 if reader.passed_over else 0


def _write(file: TextIO, form: str, text: Text, answer: Any) -> None:
    """Writes the answers to a text, of which a search may find fewer than it is asked for."""
    if form == "text":
        # A line for a line, so that answers can be put beside their sources.
        texts = answer.texts if text.content is not None else [""] * len(answer.texts)
        file.write("".join(f"{one}\n" for one in texts))
        return
    found = zip(answer.texts, answer.scores, answer.log_probs, strict=True)
    answers = [
        {"text": one, "score": round(score, 6), "log_prob": round(log_prob, 6)}
        for one, score, log_prob in found
        if text.content is not None and math.isfinite(score)
    ]
    if form == "tsv":
        for rank, one in enumerate(answers, start=1):
            figures = (text.number, rank, f"{one['score']:.6f}", f"{one['log_prob']:.6f}")
            file.write("\t".join(map(str, (*figures, escaped(one["text"])))) + "\n")
    elif text.content is not None:
        record = {"number": text.number, "source": text.content, "answers": answers}
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


class _Progress:
    """How many texts were answered, on a terminal that does not show the answers."""

    def __init__(self, shown: bool):
        self.shown = shown and sys.stderr.isatty()
        self.done = 0

    def add(self, number: int) -> None:
        self.done += number
        if self.shown:
            print(f"\r{self.done:,} texts", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown and self.done:
            print(file=sys.stderr)
