"""StatisticsGen: what the examples are like."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from keras_drill.data import WhitespaceTokenizer, WordTokenizer
from keras_drill.data.example_folder import ExampleFolder
from pipelines.components.example_gen import read_description
from pipelines.components.line_statistics import LineStatistics
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import StatisticsGenOptions
from pipelines.page.statistics_section import statistics_section

STATISTICS = "statistics.json"
_TOKENIZERS = {"whitespace": WhitespaceTokenizer, "words": WordTokenizer}


class StatisticsGen(Component):
    """Writes `statistics.json`: by column and split, what `LineStatistics` tells.

    Text is read once and not kept. What is counted over all tokens, or over all lines, is exact up
    to a million different tokens and a quarter of a million different lines, and beyond these
    counted for the most frequent tokens and estimated from a sample of the lines.

    Args:
        columns: The columns that hold text.
        options: The options.
    """

    name = "StatisticsGen"
    version = 3
    reads = ("examples",)
    writes = "statistics"

    def __init__(
        self,
        columns: Sequence[str],
        options: StatisticsGenOptions = StatisticsGenOptions(),  # noqa: B008
    ):
        super().__init__(options)
        self.columns = tuple(columns)

    def settings(self) -> dict:
        return {**super().settings(), "columns": self.columns}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        examples = ExampleFolder(inputs["examples"])
        tokenizer = _TOKENIZERS[self.options.tokenizer]()
        done = 0
        told: dict[str, dict] = {}
        for column in self.columns:
            train: LineStatistics | None = None
            told[column] = {}
            for split in examples.splits:
                statistics = LineStatistics(tokenizer)
                for block in examples.lines(split, column).tensors():
                    statistics.add(block)
                    done += len(block)
                    progress(done, "lines counted")
                told[column][split] = statistics.to_mapping(train)
                train = train or statistics
        span = read_description(inputs["examples"])["span"]
        text = json.dumps({"span": span, "columns": told}, indent=1, ensure_ascii=False)
        (output / STATISTICS).write_text(text + "\n", encoding="utf-8")
        return _facts(told)

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        return statistics_section(read_statistics(artifact)["columns"])


def read_statistics(folder: Path) -> dict:
    """What `StatisticsGen` wrote: the span, and statistics by column and split."""
    return json.loads((folder / STATISTICS).read_text(encoding="utf-8"))


def _facts(columns: Mapping[str, Mapping[str, Mapping]]) -> Facts:
    facts: Facts = {}
    for column, splits in columns.items():
        prefix = "" if len(columns) == 1 else f"{column} "
        train = splits["train"]
        facts[f"{prefix}tokens"] = train["tokens"]
        facts[f"{prefix}distinct"] = train["distinct_tokens"]
        facts[f"{prefix}duplicates"] = f"{train['duplicate_share']:.1%}"
        for split in ("test", "valid"):
            if split in splits:
                facts[f"{prefix}unseen in {split}"] = f"{splits[split]['unseen_share']:.1%}"
                break
    return facts
