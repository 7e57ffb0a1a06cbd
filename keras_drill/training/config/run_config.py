"""All options of a run, and the files and recipes that they are read from."""

import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from keras_drill.training.config.check_options import check_options
from keras_drill.training.config.language_model_sections import (
    BackboneConfig,
    DataConfig,
    HeadConfig,
    SamplesConfig,
    SensesConfig,
)
from keras_drill.training.config.option import check_value, suggest
from keras_drill.training.config.training_sections import OptimizerConfig, TrainingConfig
from keras_drill.training.errors import ConfigError


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
        check_options(self)

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


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def recipe_names() -> list[str]:
    """Names of the recipes that come with the package."""
    folder = resources.files("keras_drill") / "recipes"
    return sorted(
        file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")
    )


def recipe_text(name: str) -> str:
    """The file of a recipe."""
    if name not in recipe_names():
        raise ConfigError(f"unknown recipe {name!r}{suggest(name, recipe_names())}")
    return (resources.files("keras_drill") / "recipes" / f"{name}.toml").read_text("utf-8")


def load_config(recipe_or_file: str | os.PathLike) -> RunConfig:
    """Reads a recipe by name, or a TOML file by path.

    Example:

    >>> load_config("small-drill").head.kind
    'drill'
    """
    path = Path(recipe_or_file)
    if path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is not UTF-8 text ({error.reason})") from None
        if not text.strip():
            raise ConfigError(
                f"{path} is empty: bring its options back (`keras-drill recipes RECIPE` writes "
                "those of a recipe)"
            )
    else:
        text = recipe_text(str(recipe_or_file))
    try:
        return RunConfig.from_mapping(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
