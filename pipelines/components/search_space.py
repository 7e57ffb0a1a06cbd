"""The search space of the tuner: names of options, and values to try."""

import dataclasses
from typing import Any

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError

_HOW = (
    'tuner.search must be like "optimizer.learning_rate 5..40 log", "head.depth 1..4" or '
    '"head.activation relu,tanh"'
)


@dataclasses.dataclass(frozen=True)
class Searched:
    """One option of the search space.

    Args:
        name: Full name of the option, `"section.key"`.
        values: The values to try, or the two ends of a range if `is_range`.
        is_range: Whether `values` are the ends of a range, in which any value may be tried.
        is_logarithmic: Whether the range is sampled on a logarithmic scale.
    """

    name: str
    values: tuple[Any, ...]
    is_range: bool = False
    is_logarithmic: bool = False

    @classmethod
    def parse(cls, text: str, config: RunConfig) -> "Searched":
        """Parses one line. Converts the values to the option's type and checks them.

        Args:
            text: `NAME LOW..HIGH`, `NAME LOW..HIGH log`, or `NAME VALUE,VALUE,...`.
            config: The configuration, which defines the types of the options.
        """
        name, _, rest = text.strip().partition(" ")
        told, _, scale = rest.strip().partition(" ")
        is_range, scale = ".." in told, scale.strip()
        if not told or scale not in ("", "log") or (scale and not is_range):
            raise ConfigError(f"{_HOW}. Received: {text!r}")
        parts = told.split(".." if is_range else ",")
        values = tuple(_value(config, name, part) for part in parts)
        if is_range:
            if len(values) != 2 or type(values[0]) not in (int, float):
                raise ConfigError(f"{_HOW}. Received: {text!r}")
            if not values[0] < values[1] or (scale and values[0] <= 0):
                raise ConfigError(
                    "a range LOW..HIGH of tuner.search must have LOW less than HIGH"
                    f"{', and LOW above 0 because of log' if scale else ''}. Received: {text!r}"
                )
        elif len(set(values)) < len(values):
            raise ConfigError(f"tuner.search must not contain a value twice. Received: {text!r}")
        return cls(name, values, is_range, bool(scale))

    def add_to(self, space: Any) -> None:
        """Adds the option to `space`, a `keras_tuner.HyperParameters`."""
        if not self.is_range:
            space.Choice(self.name, list(self.values), ordered=False)
            return
        sampling = "log" if self.is_logarithmic else "linear"
        add = space.Int if isinstance(self.values[0], int) else space.Float
        add(self.name, *self.values, sampling=sampling)


def _value(config: RunConfig, name: str, text: str) -> Any:
    section, _, key = name.partition(".")
    return getattr(getattr(config.replace({name: text}), section), key)
