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
        help="train a model, or resume a training run",
        description=(
            "Trains a model with the options of a recipe, and writes all files into one folder.\n"
            "The same command, or `keras-drill train --run RUN`, resumes an interrupted run from\n"
            "its last checkpoint."
        ),
        epilog=(
            "Any option of the recipe can be given as --section.key VALUE:\n"
            "  keras-drill train small-drill --data text.txt --run runs/a --head.depth 4\n"
            "`keras-drill recipes RECIPE` shows all options."
        ),
    )
    parser.recipe = parser.add_argument(  # for completion
        "recipe",
        nargs="?",
        metavar="RECIPE|FILE.toml",
        help="name of a recipe, or path of a recipe file; not needed to resume a run",
    )
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="a text file, or a folder with train, valid and test text; for pairs of texts also "
        "tfds:NAME, a data set of tensorflow-datasets",
    )
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help="devices to train on: none (one device), mirrored (all devices of this machine), "
        "multi-worker (start the same command once for each worker in TF_CONFIG) or tpu",
    )
    parser.add_argument(
        "--run", required=True, metavar="RUN", dest="folder", help="folder of the run"
    )
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
        raise ConfigError("--run must be the path of a folder. Received: ''")
    recipe = args.recipe
    if recipe is None:
        recipe = Path(args.folder) / "config.toml"
        if not recipe.exists():
            raise ConfigError(
                "give a recipe (`keras-drill recipes` lists the recipes), because --run holds no "
                f"run to resume. Received: --run {args.folder}"
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
    # A recipe file from elsewhere must not choose where files are written.
    said = args.recipe is None or "data.on_disk" in args.overrides
    if values["data"].get("on_disk") and not said:
        raise ConfigError(
            f"{recipe} must not set data.on_disk, a folder that training writes to: remove the "
            "option from the file, and give --data.on_disk FOLDER instead"
        )
    config = config.replace(args.overrides)
    if args.data is not None:
        config = config.replace({"data.path": args.data})
    if not config.data.path:
        raise ConfigError("give the text to train on with --data PATH")
    _check_utf8("--data", config.data.path)
    # The run's folder stores these paths, so they must not depend on the current folder.
    paths = {"data.path": absolute(config.data.path)}
    values = config.to_mapping()
    for name in _PATHS:
        section, option = name.split(".")
        if values[section].get(option):
            paths[name] = os.path.abspath(values[section][option])
    return config.replace(paths)


def _check_utf8(option: str, value: str) -> None:
    """Raises `ConfigError` if a value is not UTF-8, which `config.toml` needs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{option} must be UTF-8. Received: {os.fsencode(value)!r}") from None
