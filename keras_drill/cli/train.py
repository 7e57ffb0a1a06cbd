"""`keras-drill train`."""

import argparse
import os
from pathlib import Path

from keras_drill.training.config import RunConfig, load_config
from keras_drill.training.config_error import ConfigError


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "train",
        help="train a language model, or resume a training",
        description=(
            "Trains a language model by a recipe and keeps everything in one folder.\n"
            "The same command again, or just `keras-drill train --run RUN`, resumes a training\n"
            "that was interrupted, exactly where its last checkpoint was made."
        ),
        epilog=(
            "Any option of the recipe can be given as --section.key VALUE:\n"
            "  keras-drill train small-drill --data text.txt --run runs/a --head.depth 4\n"
            "`keras-drill recipes RECIPE` shows them all."
        ),
    )
    parser.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE|FILE.toml",
        help="name of a recipe, or a file like one; not needed to resume",
    )
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="a text file, or a folder with train, valid and test text",
    )
    parser.add_argument("--run", required=True, metavar="RUN", dest="folder", help="its folder")
    return parser


def run(args: argparse.Namespace) -> int:
    config = _config(args)

    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    from keras_drill.training.prepare_process import prepare_process
    from keras_drill.training.run_folder import RunFolder
    from keras_drill.training.train_run import train_run

    prepare_process(config)
    train_run(config, RunFolder(args.folder))
    return 0


def _config(args: argparse.Namespace) -> RunConfig:
    recipe = args.recipe
    if recipe is None:
        recipe = Path(args.folder) / "config.toml"
        if not recipe.exists():
            raise ConfigError(
                f"name a recipe (`keras-drill recipes` lists them): {args.folder} holds no run "
                "that could be resumed"
            )
    config = load_config(recipe).replace(args.overrides)
    if args.data is not None:
        config = config.replace({"data.path": args.data})
    if not config.data.path:
        raise ConfigError("say which text to train on: --data PATH")
    # Kept in the run's folder, where a relative path would mean another place.
    return config.replace({"data.path": os.path.abspath(config.data.path)})
