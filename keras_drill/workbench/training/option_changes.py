"""Options of a run that are not those that its checkpoints were made with."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_drill.workbench.tasks.config import RunConfig

# What decides the scores of outputs, and with them the best epoch where it is chosen by a score.
_SCORING = ("decoding.tokenize", "decoding.score_lowercase")


class OptionChange(NamedTuple):
    """An option with another value than before.

    Args:
        name: its full name.
        before: the value in the checkpoints.
        now: the value in the options of today.
        is_allowed: whether a run may be resumed with it.
        reason: why not, where that depends on other options.
    """

    name: str
    before: Any
    now: Any
    is_allowed: bool
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} is {self.before!r} there, not {self.now!r}{self.reason}"


def recorded_options(config: RunConfig) -> dict[str, Any]:
    """The options as a checkpoint keeps them, which is JSON; those that others decide resolved."""
    return json.loads(json.dumps(config.resolved().to_mapping()))


def option_changes(config: RunConfig, recorded: Mapping[str, Any]) -> list[OptionChange]:
    """The options that differ from those of a checkpoint.

    What a checkpoint of an older version does not know had the value that it has in older runs.

    Args:
        config: the options of today.
        recorded: what `recorded_options` gave for those of the checkpoint.

    Example:

    >>> from keras_drill.workbench.tasks.load_config import load_config
    >>> config = load_config("small-drill")
    >>> longer = config.replace({"training.epochs": 999, "optimizer.learning_rate": 7.0})
    >>> [(change.name, change.is_allowed) for change in option_changes(
    ...     longer, recorded_options(config))]
    [('optimizer.learning_rate', False), ('training.epochs', True)]
    """
    now = recorded_options(config)
    if recorded["task"] != now["task"]:
        return [OptionChange("task", recorded["task"], now["task"], is_allowed=False)]
    changes = []
    for name, field in config.options().items():
        section, key = name.split(".")
        older = field.metadata["in_older_runs"]
        default = json.loads(json.dumps(field.default if older is None else older))
        before, value = recorded.get(section, {}).get(key, default), now[section][key]
        if before in (value, "auto"):  # the latter where other options, which are known, decide
            continue
        is_allowed, reason = field.metadata["may_change"], ""
        if name in _SCORING and (best_by := now["decoding"]["best_by"]) != "perplexity":
            is_allowed = False
            reason = f", and decoding.best_by = {best_by!r} compares epochs by it"
        if name == "training.epochs" and config.optimizer.ends_with_last_epoch:
            is_allowed = False
            reason = (
                f", and optimizer.schedule = {config.optimizer.schedule!r} without "
                "optimizer.decay_steps ends there"
            )
        changes.append(OptionChange(name, before, value, is_allowed, reason))
    return changes
