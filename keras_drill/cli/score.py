"""`keras-drill score`."""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keras_drill.cli.arguments import add_checkpoint_argument, add_run_argument, check_continues
from keras_drill.cli.texts import (
    Text,
    TextReader,
    add_output_arguments,
    answers_to,
    batches,
    check_output,
    escaped,
)
from keras_drill.tasks.errors import ConfigError, RunError

_COLUMNS = ("number", "log_prob", "num_words", "perplexity", "text")


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "score",
        help="log-probability per word and perplexity of texts",
        description=(
            "Prints the natural log-probability of every word of a text under the best model of a\n"
            "run, and the perplexity. Words that the model does not know are shown as <unk>, and\n"
            "every line counts with its <eos>. A file or the standard input is one text, whose\n"
            "lines follow one another; with --lines each line is a text of its own."
        ),
        epilog=(
            "Examples:\n"
            '  keras-drill score runs/a "the first sentence" "the second"\n'
            "  keras-drill score runs/a --file text.txt --total\n"
            "  keras-drill score runs/a --lines --format tsv --output scores.tsv < sentences.txt\n"
            "  zcat sentences.gz | keras-drill score runs/a --lines --format json\n"
            '  keras-drill score runs/kerbs "the bank of the river" --senses\n'
            "  keras-drill score runs/a -- --help   (a text that begins with a dash)"
        ),
    )
    add_run_argument(parser)
    add_checkpoint_argument(parser)
    parser.add_argument("texts", nargs="*", default=[], metavar="TEXT", help="texts to score")
    parser.add_argument(
        "--file", metavar="FILE", help="score a file; '-' is the standard input, also the default"
    )
    parser.add_argument(
        "--lines", action="store_true", help="every line of the file is a text of its own"
    )
    parser.add_argument("--total", action="store_true", help="only the sums, not every word")
    parser.add_argument(
        "--senses",
        action="store_true",
        help="also how probable each sense of each word is (models whose words have senses)",
    )
    add_output_arguments(parser, ("text", "tsv", "json"))
    return parser


def run(args: argparse.Namespace) -> int:
    _check(args)
    reader = TextReader()
    blocks = _texts(args, reader)

    from keras_drill.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.decoding import GreedySampler
    from keras_drill.training.loaded_run import LoadedRun
    from keras_drill.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder), args.checkpoint)
    text_model = loaded.continuing_task.text_model(
        loaded.model, loaded.words, GreedySampler(), seed=0, max_tokens=1
    )
    write = {"text": _as_text, "tsv": _as_tsv, "json": _as_json}[args.format]
    texts, words, log_prob = 0, 0, 0.0
    with answers_to(args.output) as file:
        if args.format == "tsv":
            file.write("\t".join(_COLUMNS) + "\n")
        for batch in batches(blocks):
            for record in _records(text_model, batch, args.senses):
                file.write(write(record, args.total))
                texts += 1
                words += len(record["words"])
                log_prob += sum(record["log_probs"])
            file.flush()
        if not texts:
            raise ValueError(f"{args.file or 'standard input'}: there is no text to score")
        if texts > 1:
            sums = f"{log_prob:10.4f}  all {texts} texts: {_sums(log_prob, words)}"
            print(sums, file=file if args.format == "text" else sys.stderr)
    return 1 if reader.passed_over else 0


def _check(args: argparse.Namespace) -> None:
    if args.texts and args.file:
        raise ConfigError("give texts or --file, not both")
    if args.texts and args.lines:
        raise ConfigError("give texts or --lines, not both: --lines is for files and pipes")
    if args.senses and args.total:
        raise ConfigError("give --senses or --total, not both")
    if args.senses and args.format == "tsv":
        raise ConfigError("give --senses with --format text or json: tsv has no place for them")
    if args.file not in (None, "-") and not Path(args.file).exists():
        raise FileNotFoundError(f"--file {args.file!r}: there is nothing there")
    config = check_continues(args.folder, args.checkpoint)
    if args.senses and not config.head.has_senses:
        raise RunError(
            f"the words of {args.folder} have no senses: --senses is for models that were trained "
            "with head.kind = 'kerbs' or 'drill-kerbs'"
        )
    check_output(args)


def _texts(args: argparse.Namespace, reader: TextReader) -> Iterable[list[Text]]:
    if args.texts:
        return ([text] for text in reader.arguments(args.texts))
    lines = reader.lines(args.file or "-")
    return lines if args.lines else _whole(lines)


def _whole(blocks: Iterable[list[Text]]) -> Iterator[list[Text]]:
    """One text of all lines that can be read."""
    lines = [text.content for block in blocks for text in block if text.content is not None]
    if any(line.strip() for line in lines):
        yield [Text(1, "\n".join(lines))]


def _records(text_model, batch: list[Text], senses: bool) -> Iterator[dict[str, Any]]:
    """The figures of each text of a batch that could be read."""
    import tensorflow as tf

    batch = [text for text in batch if text.content is not None]
    if not batch:
        return
    contents = tf.constant([text.content for text in batch])
    scores = {name: one.numpy() for name, one in text_model.score(contents).items()}
    posteriors = text_model.senses(contents) if senses else {}
    for row, text in enumerate(batch):
        length = scores["lengths"][row]
        record = {
            "number": text.number,
            "text": text.content,
            "log_prob": float(scores["total_log_probs"][row]),
            "num_words": int(length),
            "perplexity": float(scores["perplexities"][row]),
            "words": [word.decode() for word in scores["words"][row, :length]],
            "log_probs": scores["log_probs"][row, :length].tolist(),
        }
        if senses:
            record["senses"] = [
                {int(s): float(p) for s, p in zip(ids, probabilities, strict=True) if s >= 0}
                for ids, probabilities in zip(
                    posteriors["senses"].numpy()[row, :length],
                    posteriors["probabilities"].numpy()[row, :length],
                    strict=True,
                )
            ]
        yield record


def _as_text(record: dict[str, Any], total: bool) -> str:
    lines = []
    if not total:
        senses = record.get("senses", [{}] * record["num_words"])
        for word, log_prob, ids in zip(record["words"], record["log_probs"], senses, strict=True):
            notes = "".join(f"  {sense}:{probability:.3f}" for sense, probability in ids.items())
            lines.append(f"{log_prob:10.4f}  {word}{notes}\n")
    sums = _sums(record["log_prob"], record["num_words"])
    return "".join(lines) + f"{record['log_prob']:10.4f}  total of {sums}\n"


def _sums(log_prob: float, num_words: int) -> str:
    # No text has a perplexity that a float cannot hold, but the loss of a broken model may be NaN.
    return f"{num_words} words, perplexity {math.exp(min(-log_prob / num_words, 700)):.4f}"


def _as_tsv(record: dict[str, Any], total: bool) -> str:
    figures = (record["number"], f"{record['log_prob']:.6f}", record["num_words"])
    return (
        "\t".join(map(str, (*figures, f"{record['perplexity']:.6f}", escaped(record["text"]))))
        + "\n"
    )


def _as_json(record: dict[str, Any], total: bool) -> str:
    if total:
        record = {name: one for name, one in record.items() if name not in ("words", "log_probs")}
    return json.dumps(_rounded(record), ensure_ascii=False) + "\n"


def _rounded(value: Any) -> Any:
    """The value without digits that float32 does not have; JSON knows no infinity."""
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return value
