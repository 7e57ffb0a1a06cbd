"""`keras-drill recipes`."""

import argparse
import sys

from keras_drill.workbench.tasks.load_config import load_config, recipe_names, recipe_text

_FIRST = ("small-tied", "small-drill", "small-translation-tied", "small-dialog-tied")
_TASKS = {
    "language-model": "language models",
    "translation": "translation",
    "dialog": "dialogue",
    "autoencoder": "autoencoders",
}


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "recipes",
        help="list the recipes, or print one",
        description="Lists the recipes, with the origin of their settings and their results. With "
        "RECIPE, prints all options of this recipe as a TOML file, which you can edit.",
    )
    parser.recipe = parser.add_argument(  # for completion
        "recipe", nargs="?", metavar="RECIPE", help="the recipe to print"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    if args.recipe is not None:
        sys.stdout.write(recipe_text(args.recipe))
        return 0
    configs = {name: load_config(name) for name in recipe_names()}
    width = max(map(len, configs))
    for title, names in _group({name: config.task for name, config in configs.items()}).items():
        print(f"{title}:")
        for name in names:
            config = configs[name]
            print(f"  {name:<{width}}  {config.description}")
            print(f"  {'':<{width}}    settings: {config.origin}; {config.result}")
        print()
    print("Print one: keras-drill recipes RECIPE")
    print("Train it:  keras-drill train RECIPE --data PATH --run RUN")
    return 0


def _group(tasks: dict[str, str]) -> dict[str, list[str]]:
    """Groups recipes under titles: first steps, small models by task, model sizes of papers."""
    others = [name for name in tasks if name not in _FIRST]
    small = [name for name in others if name.startswith("small-")]
    return {
        "start here": list(_FIRST),
        **{
            f"small models for two CPU cores: {_TASKS.get(task, task)}": [
                name for name in small if tasks[name] == task
            ]
            for task in dict.fromkeys([*_TASKS, *tasks.values()])
        },
        "model sizes of papers, for a GPU": [name for name in others if name not in small],
    }
