"""Whether a model is let pass, and why, in words and numbers."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = "verdict.json"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What `Evaluator` finds.

    Args:
        blessed: Whether the model may be served.
        reasons: Why, a sentence each.
        baseline: The served version that it was compared with; `None` where there was none.
        figures: The figures behind the reasons, by name.
        bins: The comparison by how often words occur in the training text, rarest first.
        notes: What a reader of the figures should know, a sentence each.
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
        """Reads what `save` wrote."""
        return cls(**json.loads((folder / FILE).read_text(encoding="utf-8")))
