"""Summary of one training run for the report."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from keras_drill.workbench.report.evaluated_text import EvaluatedText


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """Summary of a training run for `write_report`. All fields except the name are optional.

    Args:
        name: Name of the run, unique in a report.
        output_layer: Description of the output layer, for example `"DRILL, depth 4, relu"`.
        history: Values by epoch, as in `keras.callbacks.History.history`. `perplexity` and
            `val_perplexity` are plotted if they exist, otherwise `exp(loss)` and `exp(val_loss)`.
            NaN and infinity are allowed.
        total_parameters: Number of trainable parameters of the model. A shared embedding counts
            once.
        output_parameters: Number of parameters of the output layer, without the word vectors of a
            shared embedding, see `keras_drill.workbench.analysis.count_dedicated_parameters`.
        valid_perplexity: Validation perplexity of the model that was kept.
        test_perplexity: Test perplexity of the same model.
        other_perplexities: Perplexities on other texts, by the name of the text.
        scores: Other metrics by name, higher is better, for example `{"test BLEU": 33.1}`.
        signatures: How the scores were computed, by the metric's name.
        notes: Sentences on how the metrics were obtained, if they need an explanation.
        texts: The texts of the perplexities and scores.
        best_epoch: Epoch of the model that was kept, from 1. By default, the epoch with the
            smallest finite validation value in `history`.
        seconds_per_epoch: Mean training time of an epoch.
        max_epochs: Maximum number of epochs of the run.
        config: All options of the run, possibly nested, as read from `config.toml`.
        changes: Options that were changed when the run was resumed: mappings with `option`,
            `before`, `now`, and the `epoch` and `batch` from which the new value is used.

    Example:

    >>> run = RunSummary("drill", history={"val_loss": [5.0, 4.5, 4.6]})
    >>> run.epochs, run.kept_epoch
    (3, 2)
    """

    name: str
    output_layer: str = ""
    history: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    total_parameters: int | None = None
    output_parameters: int | None = None
    valid_perplexity: float | None = None
    test_perplexity: float | None = None
    other_perplexities: Mapping[str, float] = dataclasses.field(default_factory=dict)
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    signatures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: Sequence[str] = ()
    texts: Sequence[EvaluatedText] = ()
    best_epoch: int | None = None
    seconds_per_epoch: float | None = None
    max_epochs: int | None = None
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    changes: Sequence[Mapping[str, Any]] = ()

    @property
    def perplexities(self) -> dict[str, float]:
        """All perplexities by the name of the text. The most important one is last."""
        named = {"valid": self.valid_perplexity, "test": self.test_perplexity}
        known = {name: value for name, value in named.items() if value is not None}
        return {**known, **self.other_perplexities}

    @property
    def signature_lines(self) -> list[str]:
        """Lines that describe how each score was computed."""
        return [f"{metric} signature: {value}" for metric, value in self.signatures.items()]

    @property
    def epochs(self) -> int:
        """Number of epochs in the history."""
        return max((len(values) for values in self.history.values()), default=0)

    @property
    def is_cut_off(self) -> bool:
        """Whether training ended at the maximum number of epochs."""
        return self.max_epochs is not None and self.epochs >= self.max_epochs

    @property
    def first_averaged_epoch(self) -> int | None:
        """The epoch in which NT-ASGD began to average weights.

        `None` if the weights were not averaged, or if the history does not say so.

        >>> RunSummary("a", history={"averaged_steps": [0, 0, 7]}).first_averaged_epoch
        3
        """
        before = 0.0
        for epoch, steps in enumerate(self.history.get("averaged_steps", ()), 1):
            if steps > 0:
                return None if math.isnan(before) else epoch
            before = steps
        return None

    @property
    def train_curve(self) -> list[float]:
        """Training perplexity by epoch, empty if the history has no training perplexity."""
        return self._perplexities("")

    @property
    def valid_curve(self) -> list[float]:
        """Validation perplexity by epoch, empty if the history has no validation perplexity."""
        return self._perplexities("val_")

    @property
    def kept_epoch(self) -> int | None:
        """`best_epoch`, or the epoch of the smallest finite validation perplexity."""
        if self.best_epoch is not None:
            return self.best_epoch
        finite = [
            (value, epoch)
            for epoch, value in enumerate(self.valid_curve, 1)
            if math.isfinite(value)
        ]
        return min(finite)[1] if finite else None

    def _perplexities(self, prefix: str) -> list[float]:
        if f"{prefix}perplexity" in self.history:
            return [float(value) for value in self.history[f"{prefix}perplexity"]]
        # exp overflows a Python float above 709: such a loss is plotted as a gap.
        return [
            math.inf if loss >= 709 else math.exp(loss)
            for loss in map(float, self.history.get(f"{prefix}loss", ()))
        ]
