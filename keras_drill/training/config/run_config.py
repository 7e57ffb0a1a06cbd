"""All options of a run."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from keras_drill.training.config.backbone_config import BackboneConfig
from keras_drill.training.config.check_options import check_options
from keras_drill.training.config.check_value import check_value
from keras_drill.training.config.data_config import DataConfig
from keras_drill.training.config.head_config import HeadConfig
from keras_drill.training.config.optimizer_config import OptimizerConfig
from keras_drill.training.config.samples_config import SamplesConfig
from keras_drill.training.config.senses_config import SensesConfig
from keras_drill.training.config.suggest import suggest
from keras_drill.training.config.training_config import TrainingConfig
from keras_drill.training.config_error import ConfigError


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Options of a run, section by section; what a recipe and a run's `config.toml` hold.

    Example:

    >>> config = RunConfig().replace({"head.kind": "drill", "head.depth": "4"})
    >>> config.head.depth
    4
    >>> RunConfig.from_mapping(config.to_mapping()) == config
    True
    """

    description: str = ""
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    backbone: BackboneConfig = dataclasses.field(default_factory=BackboneConfig)
    head: HeadConfig = dataclasses.field(default_factory=HeadConfig)
    senses: SensesConfig = dataclasses.field(default_factory=SensesConfig)
    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
    samples: SamplesConfig = dataclasses.field(default_factory=SamplesConfig)

    def __post_init__(self):
        check_options(self.backbone, self.head, self.senses)

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field]:
        """All options by their full name, `"section.key"`."""
        return {
            f"{section.name}.{field.name}": field
            for section in dataclasses.fields(cls)
            if dataclasses.is_dataclass(section.type)
            for field in dataclasses.fields(section.type)
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> "RunConfig":
        """Makes a configuration of the nested tables of a TOML file; what is missing is default."""
        sections = {field.name for field in dataclasses.fields(cls)}
        values = {}
        for name, content in mapping.items():
            if name == "description":
                continue
            if name not in sections or not isinstance(content, Mapping):
                raise ConfigError(f"unknown section [{name}]{suggest(name, sections)}")
            values.update({f"{name}.{key}": value for key, value in content.items()})
        described = dataclasses.replace(cls(), description=mapping.get("description", ""))
        return described.replace(values)

    def replace(self, values: Mapping[str, Any]) -> "RunConfig":
        """A configuration with other values, given by full name; text is converted."""
        options = self.options()
        sections: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            if name not in options:
                raise ConfigError(f"unknown option {name!r}{suggest(name, options)}")
            section, key = name.split(".")
            sections.setdefault(section, {})[key] = check_value(name, options[name], value)
        return dataclasses.replace(
            self,
            **{
                section: dataclasses.replace(getattr(self, section), **changes)
                for section, changes in sections.items()
            },
        )

    def to_mapping(self) -> dict[str, Any]:
        """Nested dictionaries, as `from_mapping` takes them."""
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """A TOML file with every option and what it does."""
        parts = [f"description = {json.dumps(self.description, ensure_ascii=False)}\n"]
        for section, content in self.to_mapping().items():
            if section == "description":
                continue
            lines = [
                (
                    f"{field.name} = {json.dumps(content[field.name], ensure_ascii=False)}",
                    field.metadata["comment"],
                )
                for field in dataclasses.fields(getattr(self, section))
            ]
            width = max(len(setting) for setting, _ in lines)
            parts.append(f"\n[{section}]\n")
            parts.extend(f"{setting:<{width}}  # {comment}\n" for setting, comment in lines)
        return "".join(parts)

    def differences(self, other: "RunConfig") -> list[str]:
        """Full names of the options that two configurations differ in."""
        mine, theirs = self.to_mapping(), other.to_mapping()
        return [
            name
            for name in self.options()
            if mine[name.split(".")[0]][name.split(".")[1]]
            != theirs[name.split(".")[0]][name.split(".")[1]]
        ]
