"""Settings of the TFX components, in the format of TFX's `custom_config`."""

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.load_config import load_config
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.tasks.task import Task

LINE = "line"


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of a pipeline.

    Args:
        config: The options of the run, as TOML.
        data: Path of the corpus, as for `keras-drill train --data`.
        shared: A folder that all workers can read and write.
    """

    config: str
    data: str
    shared: str

    @classmethod
    def make(cls, config: RunConfig, data: str, shared: str) -> "Settings":
        return cls(config.to_toml(), data, shared)

    @classmethod
    def from_json(cls, told: str) -> "Settings":
        return cls(**json.loads(told))

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    def to_mapping(self) -> dict[str, Any]:
        """Returns the settings as a mapping for `custom_config`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_mapping(cls, told: Mapping[str, Any]) -> "Settings":
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: told[name] for name in names})

    def task(self, **changes: Any) -> Task:
        """Makes the task.

        Args:
            **changes: Values that replace options of the run, by their full names.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "config.toml"
            path.write_text(self.config, encoding="utf-8")
            return make_task(load_config(path).replace(changes))
