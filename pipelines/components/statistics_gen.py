"""StatisticsGen: computes statistics of the examples."""

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
    """Writes `statistics.json`: the `LineStatistics` of each column and split.

    The component reads the text once and does not keep it in memory. The statistics are exact up to
    a million distinct tokens and a quarter of a million distinct lines. For larger texts, only the
    most frequent tokens are counted, and the statistics of lines are estimated from a sample.

    Args:
        columns: Names of the columns with text.
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
    """Reads the span, and the statistics by column and split, that `StatisticsGen` wrote."""
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
