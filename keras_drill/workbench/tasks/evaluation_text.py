"""A text on which models are evaluated."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_drill.data import Lines
from keras_drill.workbench.report import EvaluatedText


@dataclasses.dataclass(frozen=True)
class EvaluationText:
    """A text to evaluate models on, with its size and origin.

    Args:
        name: "valid", "test" or another split of a corpus, or the name of the text's file.
        columns: The original lines: "text", or "source" and "target".
        encoded: The encoded text, in the format of the task that read it.
        num_lines: Number of lines, or of pairs of lines.
        num_targets: Number of tokens to predict, including the end of each line.
    """

    name: str
    columns: Mapping[str, Lines]
    encoded: Any
    num_lines: int
    num_targets: int

    @property
    def described(self) -> EvaluatedText:
        """Size and origin of the text, for reports."""
        origins = dict.fromkeys(lines.origin for lines in self.columns.values())
        return EvaluatedText(self.name, " and ".join(origins), self.num_lines, self.num_targets)
