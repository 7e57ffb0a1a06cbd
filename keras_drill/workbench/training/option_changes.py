"""Differences between a run's options and the options in its checkpoints."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_drill.workbench.tasks.config import RunConfig

# Options that change the scores of outputs, and so the best epoch if a score chooses it.
_SCORING = ("decoding.tokenize", "decoding.score_lowercase")


class OptionChange(NamedTuple):
    """An option whose value differs from the value in the checkpoints.

    Args:
        name: full name of the option.
        before: the value in the checkpoints.
        now: the current value.
        is_allowed: whether a run may be resumed with the current value.
        reason: clause for `__str__` if other options do not allow the change; otherwise empty.
    """

    name: str
    before: Any
    now: Any
    is_allowed: bool
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} is {self.before!r} there, not {self.now!r}{self.reason}"


def recorded_options(config: RunConfig) -> dict[str, Any]:
    """Returns the options as a checkpoint stores them.

    All values are JSON values. The value "auto" is replaced by the value that it stands for.
    """
    return json.loads(json.dumps(config.resolved().to_mapping()))


def option_changes(config: RunConfig, recorded: Mapping[str, Any]) -> list[OptionChange]:
    """Lists the options that differ from those of a checkpoint.

    If a checkpoint lacks an option, since it is older than the option, the value `in_older_runs` of
    the option is used.

    Args:
        config: the current options.
        recorded: the options in the checkpoint, from `recorded_options`.

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
        if before in (value, "auto"):  # other options, compared by themselves, determine "auto"
            continue
        is_allowed, reason = field.metadata["may_change"], ""
        if name in _SCORING and (best_by := now["decoding"]["best_by"]) != "perplexity":
            is_allowed = False
            reason = f", and decoding.best_by = {best_by!r} depends on this option"
        if name == "training.epochs" and config.optimizer.ends_with_last_epoch:
            is_allowed = False
            reason = (
                f", and optimizer.schedule = {config.optimizer.schedule!r} without "
                "optimizer.decay_steps ends at the last epoch"
            )
        changes.append(OptionChange(name, before, value, is_allowed, reason))
    return changes
