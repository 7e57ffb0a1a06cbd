"""`keras-drill score`."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keras_drill.workbench.cli.arguments import (
    add_checkpoint_argument,
    add_run_argument,
    check_runs,
)
from keras_drill.workbench.cli.score_formats import COLUMNS, as_json, as_text, as_tsv, sums
from keras_drill.workbench.cli.texts import (
    Text,
    TextReader,
    add_output_arguments,
    answers_to,
    batches,
    check_output,
)
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError, RunError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "score",
        help="compute log-probabilities of words and perplexities of texts",
        description=(
            "Prints the natural log-probability of every word of a text under the best model of a\n"
            "run, and the perplexity. Words outside the vocabulary are shown as <unk>, and every\n"
            "line ends with <eos>. A file or standard input is one text; with --lines each line\n"
            "is a separate text.\n"
            "For models that translate or answer, a text or line has a source, a tab and a\n"
            "target, or --sources names a file with the sources. Only targets are scored."
        ),
        epilog=(
            "Examples:\n"
            '  keras-drill score runs/a "the first sentence" "the second"\n'
            "  keras-drill score runs/a --file text.txt --total\n"
            "  keras-drill score runs/a --lines --format tsv --output scores.tsv < sentences.txt\n"
            "  zcat sentences.gz | keras-drill score runs/a --lines --format json\n"
            '  keras-drill score runs/kerbs "the bank of the river" --senses\n'
            "  keras-drill score runs/de-en --sources test.de --file test.en --total\n"
            "  keras-drill score runs/de-en --format tsv < pairs.tsv\n"
            "  keras-drill score runs/a -- --help   (a text that begins with a dash)"
        ),
    )
    add_run_argument(parser)
    add_checkpoint_argument(parser)
    parser.add_argument("texts", nargs="*", default=[], metavar="TEXT", help="texts to score")
    parser.add_argument(
        "--file", metavar="FILE", help="score a file (default: '-', the standard input)"
    )
    parser.add_argument(
        "--lines", action="store_true", help="score every line of the file as a separate text"
    )
    parser.add_argument(
        "--sources",
        metavar="FILE",
        help="file with the source of each line (models that translate or answer texts)",
    )
    parser.add_argument(
        "--total", action="store_true", help="print only one line per text, without its words"
    )
    parser.add_argument(
        "--senses",
        action="store_true",
        help="also print the probability of each sense of each word (models whose words have "
        "senses)",
    )
    add_output_arguments(parser, ("text", "tsv", "json"))
    return parser


def run(args: argparse.Namespace) -> int:
    config = _check(args)
    reader = TextReader()
    blocks = _pairs(args, reader) if config.reads_sources else _texts(args, reader)

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.training.loaded_run import LoadedRun
    from keras_drill.workbench.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder), args.checkpoint)
    scorer = _AnswerScorer(loaded) if config.reads_sources else _TextScorer(loaded, args.senses)
    write = {"text": as_text, "tsv": as_tsv, "json": as_json}[args.format]
    texts, words, log_prob = 0, 0, 0.0
    with answers_to(args.output) as file:
        if args.format == "tsv":
            columns = (*COLUMNS, "source") if config.reads_sources else COLUMNS
            file.write("\t".join(columns) + "\n")
        for batch in batches(blocks):
            readable = [text for text in batch if text.content is not None]
            for record in scorer.records(readable) if readable else ():
                file.write(write(record, args.total))
                texts += 1
                words += len(record["words"])
                log_prob += sum(record["log_probs"])
            file.flush()
        if not texts:
            raise ValueError(
                f"{args.file or 'standard input'} must contain at least one text to score"
            )
        if texts > 1:
            told = f"{log_prob:10.4f}  all {texts} texts: {sums(log_prob, words)}"
            print(told, file=file if args.format == "text" else sys.stderr)
    return 1 if reader.passed_over else 0


def _check(args: argparse.Namespace) -> RunConfig:
    if args.texts and args.file:
        raise ConfigError("give texts or --file, not both")
    if args.texts and args.lines:
        raise ConfigError("give texts or --lines, not both: --lines is for files and pipes")
    if args.texts and args.sources:
        raise ConfigError(
            "give texts or --sources, not both: a text as an argument has the form SOURCE, tab, "
            "TARGET"
        )
    if args.senses and args.total:
        raise ConfigError("give --senses or --total, not both")
    if args.senses and args.format == "tsv":
        raise ConfigError("--senses requires --format text or json. Received: --format tsv")
    for option in ("file", "sources"):
        name = getattr(args, option)
        if name not in (None, "-") and not Path(name).exists():
            raise FileNotFoundError(f"--{option} must be an existing file. Received: {name!r}")
    (config,) = check_runs([args.folder], args.checkpoint)
    meaningless = ("lines", "senses") if config.reads_sources else ("sources",)
    for option in meaningless:
        if getattr(args, option):
            does = "translates or answers texts" if config.reads_sources else "continues texts"
            raise ConfigError(
                f"--{option} has no effect for {args.folder}, whose model {does}: omit the option"
            )
    if args.sources == "-" and args.file in (None, "-"):
        raise ConfigError("give --sources or --file as a file: both cannot be the standard input")
    if args.senses and not config.head.has_senses:
        raise RunError(
            f"the words of {args.folder} have no senses: --senses is for models that were trained "
            "with head.kind = 'kerbs' or 'drill-kerbs'"
        )
    check_output(args)
    return config


def _texts(args: argparse.Namespace, reader: TextReader) -> Iterable[list[Text]]:
    if args.texts:
        return ([text] for text in reader.arguments(args.texts))
    lines = reader.lines(args.file or "-")
    return lines if args.lines else _whole(lines)


def _whole(blocks: Iterable[list[Text]]) -> Iterator[list[Text]]:
    """Yields all readable lines joined to one text, or nothing if all lines are empty."""
    lines = [text.content for block in blocks for text in block if text.content is not None]
    if any(line.strip() for line in lines):
        yield [Text(1, "\n".join(lines), "the text")]


def _pairs(args: argparse.Namespace, reader: TextReader) -> Iterable[list[Text]]:
    """Returns blocks of texts. Each text is a source, a tab and a target."""
    if args.sources is None:
        blocks = [reader.arguments(args.texts)] if args.texts else reader.lines(args.file or "-")
        return ([_checked_pair(text, reader) for text in block] for block in blocks)
    name = args.file or "-"
    sources, targets = (
        [text for block in reader.lines(file) for text in block] for file in (args.sources, name)
    )
    if len(sources) != len(targets):
        raise ValueError(
            "--sources must have as many lines as the file of targets. Received: "
            f"{len(sources)} lines in {args.sources}, {len(targets)} lines in {name}"
        )
    return [[_joined(*pair) for pair in zip(sources, targets, strict=True)]]


def _checked_pair(text: Text, reader: TextReader) -> Text:
    if text.content is None or "\t" in text.content:
        return text
    return reader.pass_over(
        text.number, text.where, "the text has no tab between source and target"
    )


def _joined(source: Text, target: Text) -> Text:
    joined = None
    if source.content is not None and target.content is not None:
        joined = "\t".join(side.replace("\t", " ") for side in (source.content, target.content))
    return Text(target.number, joined, target.where)


class _TextScorer:
    """Scores texts with a model that continues texts."""

    def __init__(self, loaded: Any, senses: bool):
        from keras_drill.decoding import GreedySampler

        self.senses = senses
        self.text_model = loaded.continuing_task.text_model(
            loaded.model, loaded.vocabulary, GreedySampler(), seed=0, max_tokens=1
        )

    def records(self, batch: list[Text]) -> Iterator[dict[str, Any]]:
        contents = [text.content for text in batch]
        scores = {name: one.numpy() for name, one in self.text_model.score(contents).items()}
        posteriors = self.text_model.senses(contents) if self.senses else {}
        for row, text in enumerate(batch):
            record = _record(text.number, text.content, scores, row)
            if self.senses:
                length = record["num_words"]
                record["senses"] = [
                    {int(s): float(p) for s, p in zip(ids, probabilities, strict=True) if s >= 0}
                    for ids, probabilities in zip(
                        posteriors["senses"].numpy()[row, :length],
                        posteriors["probabilities"].numpy()[row, :length],
                        strict=True,
                    )
                ]
            yield record


class _AnswerScorer:
    """Scores targets given their sources, with a model that translates or answers texts."""

    def __init__(self, loaded: Any):
        task = loaded.answering_task
        self.translator = task.translator(loaded.model, loaded.vocabulary, task.make_search())

    def records(self, batch: list[Text]) -> Iterator[dict[str, Any]]:
        pairs = [text.content.split("\t")[:2] for text in batch if text.content is not None]
        sources, targets = zip(*pairs, strict=True)
        scores = {
            name: one.numpy() for name, one in self.translator.score(sources, targets).items()
        }
        for row, text in enumerate(batch):
            yield {**_record(text.number, targets[row], scores, row), "source": sources[row]}


def _record(number: int, text: str | None, scores: dict[str, Any], row: int) -> dict[str, Any]:
    length = int(scores["lengths"][row])
    return {
        "number": number,
        "text": text,
        "log_prob": float(scores["total_log_probs"][row]),
        "num_words": length,
        "perplexity": float(scores["perplexities"][row]),
        "words": [word.decode() for word in scores["words"][row, :length]],
        "log_probs": scores["log_probs"][row, :length].tolist(),
    }
