"""Base class of a run's options, with their checks and their TOML format."""

import abc
import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from keras_drill.workbench.tasks.config.head_sections import HeadConfig, SensesConfig, describe_head
from keras_drill.workbench.tasks.config.option import check_value, suggest
from keras_drill.workbench.tasks.config.training_sections import OptimizerConfig, TrainingConfig
from keras_drill.workbench.tasks.errors import ConfigError

_OF_RECIPES = ("origin", "result")
_NOT_SECTIONS = ("task", "description", *_OF_RECIPES)

Config = TypeVar("Config", bound="RunConfig")


@dataclasses.dataclass(frozen=True)
class RunConfig(abc.ABC):
    """Base class for the options of a run, by section.

    Recipes and the `config.toml` of a run contain these options. Each task has a subclass with its
    own sections.

    Attributes:
        task: Name of the task.
        reads_sources: Whether the models generate an output for each source (translation, dialog,
            autoencoder). Otherwise they continue texts.
        word_files: Names of the files in a run's folder that hold its vocabulary.
        description: Description of the recipe or run in one line.
        origin: Origin of a recipe's settings, for example a paper; empty for runs.
        result: Result of a recipe that was trained with this package; otherwise empty.
        data, backbone, head, senses, optimizer, training: The sections.
    """

    task: ClassVar[str]
    reads_sources: ClassVar[bool] = False
    word_files: ClassVar[tuple[str, ...]]

    description: str = ""
    origin: str = ""
    result: str = ""
    data: Any = None
    backbone: Any = None
    head: HeadConfig = dataclasses.field(default_factory=HeadConfig)
    senses: SensesConfig = dataclasses.field(default_factory=SensesConfig)
    optimizer: OptimizerConfig = dataclasses.field(default_factory=OptimizerConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)

    def __post_init__(self):
        self.check()

    @abc.abstractmethod
    def check(self) -> None:
        """Raises `ConfigError` for combinations of options that are not allowed."""

    def resolved(self: Config) -> Config:
        """Returns a copy in which each `"auto"` is replaced by the value that it stands for."""
        return self

    @property
    def output_layer(self) -> str:
        """Description of the output layer in a few words."""
        return describe_head(self.head, self.senses)

    @property
    def patience(self) -> int:
        """Number of epochs without a better validation loss after which training ends.

        0 means that training does not end early. With NT-ASGD, training does not end before one
        epoch with averaged weights, since averaging begins by a similar criterion.
        """
        patience = self.training.patience
        interval = self.optimizer.nonmonotone_interval
        if patience and interval and self.optimizer.kind == "nt-asgd":
            return max(patience, interval + 2)
        return patience

    @classmethod
    def options(cls) -> dict[str, dataclasses.Field]:
        """Returns the dataclass fields of all options by full name, `"section.key"`."""
        return {
            f"{section.name}.{field.name}": field
            for section in dataclasses.fields(cls)
            if dataclasses.is_dataclass(section.type)
            for field in dataclasses.fields(section.type)
        }

    @classmethod
    def from_mapping(cls: type[Config], mapping: Mapping[str, Any], is_run: bool = False) -> Config:
        """Makes a configuration from the nested tables of a TOML file.

        Missing options have their defaults.

        Args:
            mapping: The tables.
            is_run: Whether the tables are those of a run. Options that such tables lack did not
                exist when the run was made, and have the value `in_older_runs` of `option`.

        Raises:
            ConfigError: A section or an option is unknown, or a value is not allowed.
        """
        sections = {field.name for field in dataclasses.fields(cls)}
        values = {}
        if is_run:
            older = {name: one.metadata["in_older_runs"] for name, one in cls.options().items()}
            values.update({name: value for name, value in older.items() if value is not None})
        for name, content in mapping.items():
            if name in _NOT_SECTIONS:
                continue
            if name not in sections:
                raise ConfigError(f"unknown section [{name}]{suggest(name, sections)}")
            if not isinstance(content, Mapping):
                raise ConfigError(
                    f"{name} must be a section [{name}]. Received: {name} = {content!r}"
                )
            values.update({f"{name}.{key}": value for key, value in content.items()})
        texts = {name: mapping.get(name, "") for name in ("description", *_OF_RECIPES)}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise ConfigError(f"{name} must be a string. Received: {text!r}")
        return dataclasses.replace(cls().replace(values), **texts)

    def replace(self: Config, values: Mapping[str, Any]) -> Config:
        """Returns a copy with other values for some options.

        The copy no longer describes a recipe, so its `origin` and `result` are empty.

        Args:
            values: The values by the full names of options, `"section.key"`. Strings are converted
                to the option's type.

        Raises:
            ConfigError: An option is unknown, or a value is not allowed.
        """
        options = self.options()
        sections: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            if name not in options:
                raise ConfigError(f"unknown option {name!r}{suggest(name, options)}")
            section, key = name.split(".")
            sections.setdefault(section, {})[key] = check_value(name, options[name], value)
        return dataclasses.replace(
            self,
            origin="",
            result="",
            **{
                section: dataclasses.replace(getattr(self, section), **changes)
                for section, changes in sections.items()
            },
        )

    def to_mapping(self) -> dict[str, Any]:
        """Returns the options as nested dictionaries, which `from_mapping` reads."""
        values = {"task": self.task, **dataclasses.asdict(self)}
        return {name: value for name, value in values.items() if value or name not in _OF_RECIPES}

    def to_toml(self) -> str:
        """Returns the content of a TOML file with every option and its description."""
        parts = [
            f"task = {_toml(self.task)}\n",
            f"description = {_toml(self.description)}\n",
        ]
        for name in _OF_RECIPES:
            if text := getattr(self, name):
                parts.append(f"{name} = {_toml(text)}\n")
        for section, content in self.to_mapping().items():
            if section in _NOT_SECTIONS:
                continue
            lines = [
                (
                    f"{field.name} = {_toml(content[field.name])}",
                    field.metadata["comment"],
                )
                for field in dataclasses.fields(getattr(self, section))
            ]
            width = max(len(setting) for setting, _ in lines)
            parts.append(f"\n[{section}]\n")
            parts.extend(f"{setting:<{width}}  # {comment}\n" for setting, comment in lines)
        return "".join(parts)


def _toml(value: Any) -> str:
    """Formats a value as TOML, which is JSON except that U+007F must be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
