"""Description of the texts that models were evaluated on: size and source files."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import element, table, words
from keras_drill.workbench.report.page.formatting import format_count, text_table


@dataclasses.dataclass(frozen=True)
class EvaluatedText:
    """A text that a model was evaluated on.

    Args:
        name: The split of a corpus, or the name of the text's file.
        origin: Description of the source files for the user.
        num_lines: Number of lines, or of pairs of lines.
        num_targets: Number of tokens to predict, including the end of each line.

    Example:

    >>> print(EvaluatedText("news.txt", "/data/news.txt", 31, 1234))
    31 lines with 1,234 targets of /data/news.txt
    """

    name: str
    origin: str
    num_lines: int
    num_targets: int

    def __str__(self) -> str:
        return f"{self.num_lines:,} lines with {self.num_targets:,} targets of {self.origin}"

    def to_json(self) -> dict[str, Any]:
        """Returns the description for JSON files of results."""
        return {"lines": self.num_lines, "targets": self.num_targets, "origin": self.origin}


def texts_section(texts: Mapping[str, Sequence[EvaluatedText]]) -> ElementTree.Element:
    """Builds the table of the texts of all runs.

    Args:
        texts: The texts of each run, by the name of the run.
    """
    grouped = _runs_by_text(texts)
    rows: list[list[ElementTree.Element | str]] = [
        [
            element("bdi", text.name),
            words(runs, ", "),
            element("code", text.origin),
            format_count(text.num_lines),
            format_count(text.num_targets),
        ]
        for text, runs in grouped.items()
    ]
    return element(
        "section",
        element("h2", "Texts"),
        table("Texts of the evaluation", ["text", "runs", "from", "lines", "targets"], rows),
        element(
            "p", "Targets are the tokens to predict, including the end of each line.", class_="note"
        ),
        class_="facts",
    )


def describe_texts(texts: Mapping[str, Sequence[EvaluatedText]]) -> str:
    """Formats the texts of all runs as a table for the terminal.

    Example:

    >>> text = EvaluatedText("test", "ptb.test.txt", 3761, 82430)
    >>> print(describe_texts({"tied": [text], "drill": [text]}))
    text  runs         from          lines  targets
    test  tied, drill  ptb.test.txt  3,761   82,430
    """
    rows = [("text", "runs", "from", "lines", "targets")]
    for text, runs in _runs_by_text(texts).items():
        sizes = (f"{text.num_lines:,}", f"{text.num_targets:,}")
        rows.append((text.name, ", ".join(runs), text.origin, *sizes))
    return text_table(rows, left=3)


def _runs_by_text(
    texts: Mapping[str, Sequence[EvaluatedText]],
) -> dict[EvaluatedText, list[str]]:
    grouped: dict[EvaluatedText, list[str]] = {}
    for run, some in texts.items():
        for text in some:
            grouped.setdefault(text, []).append(run)
    return grouped
