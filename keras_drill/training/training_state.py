"""How far a training has come."""

import dataclasses
import math
from typing import Any


@dataclasses.dataclass
class TrainingState:
    """What a training knows beside its variables; kept in every checkpoint.

    Args:
        epoch: epochs done.
        batch: batches done of the epoch under way.
        step: batches done in all.
        epoch_seconds: time spent on the batches done of the epoch under way.
        history: one mapping from name to value per epoch done.
        best_epoch: epoch of the best model, from 1; 0 where there is none yet.
        best_loss: its validation loss.
        stopped_early: whether the validation loss has stopped improving.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    epoch_seconds: float = 0.0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = math.inf
    stopped_early: bool = False

    def to_mapping(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)

    def assign(self, mapping: dict[str, Any]) -> None:
        """Takes over what `to_mapping` gave."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, mapping[field.name])
