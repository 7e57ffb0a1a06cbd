"""`keras-drill recipes`."""

import argparse
import sys

from keras_drill.workbench.tasks.load_config import load_config, recipe_names, recipe_text


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "recipes",
        help="list the recipes, or print one",
        description="Lists the recipes, or prints one with all its options, to be edited.",
    )
    parser.add_argument("recipe", nargs="?", metavar="RECIPE", help="the recipe to print")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.recipe is not None:
        sys.stdout.write(recipe_text(args.recipe))
        return 0
    width = max(map(len, recipe_names()))
    for name in recipe_names():
        print(f"{name:<{width}}  {load_config(name).description}")
    return 0
