"""Loads recipes and configuration files of all tasks."""

import dataclasses
import difflib
import os
import sys
from importlib import resources
from pathlib import Path

from keras_drill.workbench.tasks.autoencoder.config import AutoencoderConfig
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.config.option import suggest
from keras_drill.workbench.tasks.dialog.config import DialogConfig
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.translation.config import TranslationConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


CONFIGS: tuple[type[RunConfig], ...] = (
    LanguageModelConfig,
    TranslationConfig,
    DialogConfig,
    AutoencoderConfig,
)


def all_options() -> dict[str, dataclasses.Field]:
    """Returns the options of all tasks by full name, `"section.key"`.

    For an option of several tasks, the first task's definition is used.
    """
    return {name: field for one in reversed(CONFIGS) for name, field in one.options().items()}


def config_class(task: str) -> type[RunConfig]:
    """Returns the configuration class of the task with this name."""
    classes = {one.task: one for one in CONFIGS}
    if not isinstance(task, str) or task not in classes:  # the value in a file may have any type
        raise ConfigError(f"unknown task {task!r}{suggest(str(task), classes)}")
    return classes[task]


def recipe_names() -> list[str]:
    """Returns the names of the recipes in this package."""
    folder = resources.files("keras_drill.workbench") / "recipes"
    return sorted(
        file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")
    )


def recipe_text(name: str) -> str:
    """Returns the content of a recipe's file."""
    if name not in recipe_names():
        close = difflib.get_close_matches(name, recipe_names(), n=1)
        known = "`keras-drill recipes` lists all; the name of a recipe file must end in .toml"
        raise ConfigError(
            f"unknown recipe {name!r}; " + (f"did you mean {close[0]!r}?" if close else known)
        )
    return (resources.files("keras_drill.workbench") / "recipes" / f"{name}.toml").read_text(
        "utf-8"
    )


def load_config(recipe_or_file: str | os.PathLike, is_run: bool = False) -> RunConfig:
    """Reads a recipe by name, or a TOML file by path.

    Args:
        recipe_or_file: The name or the path.
        is_run: Whether the file belongs to a run; see `RunConfig.from_mapping`.

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
                f"{path} is empty: restore its options (`keras-drill recipes RECIPE` prints the "
                "options of a recipe)"
            )
    else:
        text = recipe_text(str(recipe_or_file))
    try:
        mapping = tomllib.loads(text)
        # Old files do not name their task.
        task = mapping.get("task", LanguageModelConfig.task)
        return config_class(task).from_mapping(mapping, is_run)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    # The reader also raises other errors, for too long numbers and too deep nesting.
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
