"""The reference pages name all that is public."""

import importlib
import inspect
import pkgutil

import pytest

import keras_drill
from docs.docstring_to_markdown import docstring_to_markdown
from docs.write_reference import API_PAGES, public_names, write_pages
from keras_drill.workbench.cli.main import make_parser
from keras_drill.workbench.tasks.load_config import CONFIGS, load_config, recipe_names


@pytest.fixture(scope="module")
def pages():
    return write_pages()


def test_every_public_module_has_a_page():
    rooms = {
        f"keras_drill.{room.name}"
        for room in pkgutil.iter_modules(keras_drill.__path__)
        if room.name in (*keras_drill.__all__, "data", "distribute", "export")
    }
    assert rooms <= {module for module, _ in API_PAGES.values()}


@pytest.mark.parametrize("name", ["api", *(f"api-{page}" for page in API_PAGES)])
def test_every_public_name_is_described(pages, name):
    module = "keras_drill" if name == "api" else API_PAGES[name.removeprefix("api-")][0]
    for public in public_names(module):
        assert f"\n## `{public}`\n" in pages[name]
        thing = getattr(importlib.import_module(module), public)
        assert not callable(thing) or inspect.getdoc(thing), f"{public} has no docstring"


def test_every_command_and_argument_is_described(pages):
    _, commands = make_parser()
    for command, parser in commands.items():
        assert f"\n## `keras-drill {command}`\n" in pages["commands"]
        for action in parser._actions:
            assert all(f"`{name}" in pages["commands"] for name in action.option_strings)


def test_every_option_of_recipes_is_described(pages):
    for config in CONFIGS:
        for option in config.options():
            assert f"| `{option}`" in pages["options"]


def test_every_recipe_is_listed_with_its_origin_and_result(pages):
    for name in recipe_names():
        config = load_config(name)
        row = f"| `{name}` | {config.description} | {config.origin} | {config.result} |"
        assert row in pages["recipes"]


def test_sections_of_docstrings_become_lists_and_examples_code():
    text = (
        "Adds.\n\nArgs:\n    a: One.\n      More.\n    **kwargs: Rest.\n\nExample:\n\n>>> 1 + 1\n2"
    )
    assert docstring_to_markdown(text) == (
        "Adds.\n\n**Args**\n\n- `a`: One. More.\n- `**kwargs`: Rest.\n\n**Example**\n\n"
        "```python\n>>> 1 + 1\n2\n```"
    )
