"""Model cards, which describe exported models."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Facts = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class ModelCard:
    """Model card: a description of a model for its users.

    The export functions, such as `export_saved_model`, take a card as `card`, and write it to the
    folder of the model (in a SavedModel, to the sub-folder `assets.extra`). `data`, `figures`,
    `weights` and `versions` are mappings from names of your choice to values. The export functions
    write the card as it is, as `model_card.md` and `model_card.json`. The Markdown page has a table
    for each mapping that is not empty.

    Args:
        name: Name of the model.
        description: Description in one sentence.
        trained: When the model was trained, as text, or "unknown".
        licence: Terms of use, or "not stated".
        data: Data for training and evaluation.
        figures: Metrics of the model.
        weights: Type of the stored weights, and the effects of this type on size and accuracy.
            Empty by default, like the arguments below.
        limits: Limitations of the model, one sentence each.
        options: Options of the training run by section, for example
            `{"optimizer": {"kind": "adam"}}`.
        versions: Versions of the software that exported the model.

    Example:

    >>> from keras_drill.export import ModelCard
    >>> card = ModelCard("cats", "A tied softmax.", "unknown", "not stated", {"lines": 7}, {})
    >>> card.to_markdown().splitlines()[2:7]
    ['A tied softmax.', '', 'Trained: unknown. Licence: not stated.', '', '## Data']

    References:
        - Mitchell et al., "Model Cards for Model Reporting", FAT* 2019.
    """

    name: str
    description: str
    trained: str
    licence: str
    data: Facts
    figures: Facts
    weights: Facts = dataclasses.field(default_factory=dict)
    limits: Sequence[str] = ()
    options: Mapping[str, Facts] = dataclasses.field(default_factory=dict)
    versions: Facts = dataclasses.field(default_factory=dict)

    def write(self, folder: str | os.PathLike) -> None:
        """Writes `model_card.md` and `model_card.json` to an existing folder."""
        folder = Path(folder)
        (folder / "model_card.md").write_text(self.to_markdown(), encoding="utf-8")
        told = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        (folder / "model_card.json").write_text(told + "\n", encoding="utf-8")

    def to_markdown(self) -> str:
        """Returns the card as a Markdown page."""
        options = {
            f"{section}.{key}": value
            for section, values in self.options.items()
            for key, value in values.items()
        }
        parts = [
            f"# {self.name}",
            self.description,
            f"Trained: {self.trained}. Licence: {self.licence}.",
            _section("Data", self.data),
            _section("Figures", self.figures),
            _section("Weights", self.weights),
            "\n".join(["## Limits", "", *(f"- {limit}" for limit in self.limits)]),
            _section("Versions", self.versions),
            _section("Options of the training", options),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, facts: Facts) -> str:
    if not facts:
        return ""
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in facts.items()]
    return "\n".join([f"## {title}", "", "| | |", "|---|---|", *rows])


def _cell(value: Any) -> str:
    """Escapes a value for a cell of a Markdown table."""
    if isinstance(value, float):
        value = f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    elif isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:,}"
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return value.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
