"""A text that models are evaluated on."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_drill.data import Lines
from keras_drill.workbench.report import EvaluatedText


@dataclasses.dataclass(frozen=True)
class EvaluationText:
    """A text to evaluate models on, with its size and origin.

    Args:
        name: The split of a corpus, or the name of the text's file.
        columns: The lines as they were written, by column of the task.
        encoded: What the task makes of them, for the task that read them.
        num_lines: Number of lines, or of pairs of lines.
        num_targets: Number of tokens to predict, the end of each line among them.
    """

    name: str
    columns: Mapping[str, Lines]
    encoded: Any
    num_lines: int
    num_targets: int

    @property
    def described(self) -> EvaluatedText:
        """What a report says of the text."""
        origins = dict.fromkeys(lines.origin for lines in self.columns.values())
        return EvaluatedText(self.name, " and ".join(origins), self.num_lines, self.num_targets)
