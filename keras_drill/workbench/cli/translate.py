"""`keras-drill translate`."""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from keras_drill.workbench.cli.arguments import (
    add_checkpoint_argument,
    add_run_argument,
    add_sampler_arguments,
    check_answers,
    sampler_settings,
)
from keras_drill.workbench.cli.search_arguments import add_search_arguments, search_changes
from keras_drill.workbench.cli.texts import (
    Text,
    TextReader,
    add_output_arguments,
    answers_to,
    batches,
    check_output,
    escaped,
)
from keras_drill.workbench.tasks.errors import ConfigError

_COLUMNS = ("number", "rank", "score", "log_prob", "text", "is_truncated")
_OF_BEAMS = (
    "num_beams",
    "length_penalty",
    "coverage_penalty",
    "num_groups",
    "diversity",
    "replace_unknown",
)
_ROWS = 512  # texts that are sorted by length, to form batches of similar lengths


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "translate",
        aliases=["answer"],
        help="translate or answer texts with a model",
        description=(
            "Translates texts with the best model of a run, or answers texts if the model was\n"
            "trained on dialogues. Each line of input, also if empty, gives one line of output."
        ),
        epilog=(
            "Examples:\n"
            "  keras-drill translate runs/de-en < test.de > test.en\n"
            "  keras-drill translate runs/de-en --file test.de --output test.en\n"
            '  keras-drill translate runs/de-en "Ein Hund läuft." --n-best 3 --format tsv\n'
            "  keras-drill translate runs/de-en --num-beams 8 --no-repeat-ngram 3 < test.de\n"
            "  keras-drill translate runs/de-en --file test.de --prefixes beginnings.en\n"
            '  keras-drill answer runs/dialog "How are you?" -n 5 --sample --sampler top-p\n'
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
        help="texts to translate (default: the lines of --file or of standard input)",
    )
    parser.add_argument(
        "--file", metavar="FILE", help="translate the lines of a file; '-' is the standard input"
    )
    parser.add_argument(
        "--prefixes",
        metavar="FILE",
        help="file with the beginning of each output, one line per text; lines may be empty",
    )
    add_search_arguments(parser)
    parser.add_argument(
        "--sample", action="store_true", help="sample -n outputs at random, without beam search"
    )
    add_sampler_arguments(parser, "sampling (only with --sample)", "temperature")
    add_output_arguments(parser, ("text", "tsv", "json"))
    parser.set_defaults(sampler_defaults=sampler_settings(parser.parse_args(["RUN"])))
    return parser


def run(args: argparse.Namespace) -> int:
    config = check_answers(args.folder, args.checkpoint)
    changes = search_changes(args, config)
    _check(args, config)
    reader = TextReader()
    if args.sources:
        blocks: Iterable[list[Text]] = [reader.arguments(args.sources)]
    else:
        blocks = reader.lines(args.file or "-")
    prefixes = None
    if args.prefixes is not None:
        prefixes = [text for block in reader.lines(args.prefixes) for text in block]

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.tasks.answer import Limits, answer_all
    from keras_drill.workbench.training.loaded_run import LoadedRun
    from keras_drill.workbench.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder), args.checkpoint, changes)
    translator = _translator(args, loaded)
    progress = _Progress(shown=args.output is not None or not sys.stdout.isatty())
    limits = Limits()
    with answers_to(args.output) as file:
        if args.format == "tsv":
            file.write("\t".join(_COLUMNS) + "\n")
        for batch in batches(blocks, most=_ROWS):
            begins = None
            if prefixes is not None:
                batch, begins = _with_prefixes(batch, prefixes, args.prefixes)
            answers = answer_all(
                translator,
                [text.content or "" for text in batch],
                prefixes=begins,
                first_row=progress.done,
            )
            limits.add(answers)
            for text, answer in zip(batch, answers, strict=True):
                _write(file, args.format, text, answer)
            file.flush()
            progress.add(len(batch))
    progress.end()
    if prefixes is not None and len(prefixes) != progress.done:
        raise ValueError(
            "--prefixes must have one line per text. Received: "
            f"{len(prefixes)} lines in {args.prefixes} for {progress.done} texts"
        )
    limits.warn(loaded.config)
    return 1 if reader.passed_over else 0


def _check(args: argparse.Namespace, config: Any) -> None:
    if args.sources and args.file:
        raise ConfigError("give texts or --file, not both")
    for option in ("file", "prefixes"):
        name = getattr(args, option)
        if name not in (None, "-") and not Path(name).exists():
            raise FileNotFoundError(f"--{option} must be an existing file. Received: {name!r}")
    if args.prefixes == "-" and not args.sources and args.file in (None, "-"):
        raise ConfigError("give texts or --prefixes as a file: both cannot be the standard input")
    if args.sample:
        given = [name for name in _OF_BEAMS if getattr(args, name) is not None]
        if given:
            raise ConfigError(f"--{given[0].replace('_', '-')} has no effect with --sample")
        if config.decoding.replace_unknown:
            raise ConfigError(
                "--sample requires decoding.replace_unknown = false in config.toml of the run. "
                "Received: true"
            )
        if args.sampler == "greedy" and (args.num_results or config.decoding.num_results) > 1:
            raise ConfigError(
                f"-n {args.num_results or config.decoding.num_results} needs a sampler with random "
                "choices, such as --sampler top-p, because greedy gives the same output each time"
            )
    else:
        for name, value in sampler_settings(args).items():
            if value != args.sampler_defaults[name]:
                raise ConfigError(f"--{name.replace('_', '-')} has no effect without --sample")
    check_output(args)


def _translator(args: argparse.Namespace, loaded: Any) -> Any:
    """Makes the translator, which uses beam search or, with `--sample`, a sampler."""
    task = loaded.answering_task
    if not args.sample:
        return task.translator(loaded.model, loaded.vocabulary, task.make_search())
    from keras_drill.workbench.tasks.make_sampler import make_sampler

    k = min(args.k, len(loaded.vocabulary.tokens))
    sampler = make_sampler(args.sampler, args.temperature, k, args.p, args.min_p)
    return task.translator(
        loaded.model,
        loaded.vocabulary,
        sampler,
        seed=args.seed,
        num_samples=loaded.config.decoding.num_results,
    )


def _with_prefixes(
    batch: list[Text], prefixes: list[Text], name: str
) -> tuple[list[Text], list[str]]:
    """Returns the texts of a batch and the prefixes of their outputs.

    A text whose prefix is invalid gets the content `None`.
    """
    if batch[-1].number > len(prefixes):
        raise ValueError(
            f"--prefixes must have one line per text. Received: {len(prefixes)} lines in {name}, "
            f"none for {batch[-1].where}"
        )
    begins = [prefixes[text.number - 1].content for text in batch]
    pairs = zip(batch, begins, strict=True)
    batch = [dataclasses.replace(t, content=None) if b is None else t for t, b in pairs]
    return batch, [begin or "" for begin in begins]


def _write(file: TextIO, form: str, text: Text, answer: Any) -> None:
    """Writes the outputs of a text, of which a search may find fewer than requested."""
    if form == "text":
        # Every source gives the same number of lines, so that lines can be aligned.
        texts = answer.texts if text.content is not None else [""] * len(answer.texts)
        file.write("".join(f"{one}\n" for one in texts))
        return
    found = zip(answer.texts, answer.scores, answer.log_probs, answer.is_truncated, strict=True)
    answers = [
        {
            "text": one,
            "score": round(score, 6),
            "log_prob": round(log_prob, 6),
            "is_truncated": is_truncated,
        }
        for one, score, log_prob, is_truncated in found
        if text.content is not None and math.isfinite(score)
    ]
    if form == "tsv":
        for rank, one in enumerate(answers, start=1):
            figures = (text.number, rank, f"{one['score']:.6f}", f"{one['log_prob']:.6f}")
            columns = (*figures, escaped(one["text"]), str(one["is_truncated"]).lower())
            file.write("\t".join(map(str, columns)) + "\n")
    elif text.content is not None:
        record = {
            "number": text.number,
            "source": text.content,
            "is_source_truncated": answer.is_cut,
            "answers": answers,
        }
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


class _Progress:
    """Counter of finished texts on the terminal, for outputs that go elsewhere."""

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
