"""`keras-drill train`."""

import argparse
import os
from pathlib import Path

from keras_drill.workbench.cli.arguments import absolute
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.load_config import load_config

_PATHS = (
    "training.start_from",
    "data.on_disk",
    "data.tokenizer_model",
    "data.source_tokenizer_model",
)


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "train",
        help="train a model, or resume a training",
        description=(
            "Trains a model by a recipe and keeps everything in one folder.\n"
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
        help="a text file, or a folder with train, valid and test text; for pairs also tfds:NAME, "
        "a data set of tensorflow-datasets",
    )
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help="devices to train on: none (one), mirrored (all of this machine), multi-worker (start "
        "the same command once for each worker that TF_CONFIG names) or tpu",
    )
    parser.add_argument("--run", required=True, metavar="RUN", dest="folder", help="its folder")
    return parser


def run(args: argparse.Namespace) -> int:
    config = _config(args)

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.training.run_folder import RunFolder
    from keras_drill.workbench.training.train_run import prepare_process, train_run

    prepare_process(config)
    train_run(config, RunFolder(args.folder))
    return 0


def _config(args: argparse.Namespace) -> RunConfig:
    if not args.folder:
        raise ConfigError("--run must name a folder, not be empty")
    recipe = args.recipe
    if recipe is None:
        recipe = Path(args.folder) / "config.toml"
        if not recipe.exists():
            raise ConfigError(
                f"name a recipe (`keras-drill recipes` lists them): {args.folder} holds no run "
                "that could be resumed"
            )
    for name, value in args.overrides.items():
        for one in value if isinstance(value, list) else [value]:
            _check_utf8(f"--{name}", one)
    if args.strategy is not None:
        if "training.strategy" in args.overrides:
            raise ConfigError("give --strategy or --training.strategy, not both")
        args.overrides["training.strategy"] = args.strategy
    config = load_config(recipe, is_run=args.recipe is None)
    values = config.to_mapping()
    # Where anything is written is said by whoever types the command, or by the run's own file.
    said = args.recipe is None or "data.on_disk" in args.overrides
    if values["data"].get("on_disk") and not said:
        raise ConfigError(
            f"{recipe} has data.on_disk, where a training writes: take it out of the file, and "
            "give it as --data.on_disk FOLDER"
        )
    config = config.replace(args.overrides)
    if args.data is not None:
        config = config.replace({"data.path": args.data})
    if not config.data.path:
        raise ConfigError("say which text to train on: --data PATH")
    _check_utf8("--data", config.data.path)
    # Kept in the run's folder, where a relative path would mean another place.
    paths = {"data.path": absolute(config.data.path)}
    values = config.to_mapping()
    for name in _PATHS:
        section, option = name.split(".")
        if values[section].get(option):
            paths[name] = os.path.abspath(values[section][option])
    return config.replace(paths)


def _check_utf8(option: str, value: str) -> None:
    """Makes sure that a value can be kept in `config.toml`."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{option} must be UTF-8, not {os.fsencode(value)!r}") from None
