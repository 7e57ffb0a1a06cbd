"""Verdict: whether a model may be served, and the reasons."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = "verdict.json"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The decision of `Evaluator`.

    Args:
        blessed: Whether the model passed the evaluation, so that it may be served.
        reasons: Reasons for the decision, one sentence each.
        baseline: Number of the served version with which the model was compared; `None` if there
            was none.
        figures: Metrics behind the reasons, by name.
        bins: The comparison by the frequency of words in the training text, rarest words first.
        notes: Remarks on the metrics, one sentence each.
    """

    blessed: bool
    reasons: Sequence[str]
    baseline: int | None = None
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bins: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()

    def save(self, folder: Path) -> None:
        """Writes `verdict.json`."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Verdict":
        """Reads the file `verdict.json` that `save` wrote."""
        return cls(**json.loads((folder / FILE).read_text(encoding="utf-8")))
