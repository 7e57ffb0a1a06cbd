"""Recipes and configuration files."""

import os
import sys
from importlib import resources
from pathlib import Path

from keras_drill.training.config.run_config import RunConfig
from keras_drill.training.config.suggest import suggest
from keras_drill.training.config_error import ConfigError

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
    else:
        text = recipe_text(str(recipe_or_file))
    try:
        return RunConfig.from_mapping(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
