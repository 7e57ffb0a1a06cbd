"""`keras-drill export`."""

import argparse
from pathlib import Path
from typing import Any

from keras_drill.workbench.cli.arguments import (
    MAX_TOKENS,
    add_checkpoint_argument,
    add_run_argument,
    add_sampling_arguments,
    check_runs,
    folder_name,
    output_folder,
    sampler_settings,
    some_path,
    whole_number,
)
from keras_drill.workbench.cli.search_arguments import (
    add_search_arguments,
    given_search_arguments,
    search_changes,
)
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError

# Default folders by format: TensorFlow Serving takes every version in its folder for a SavedModel.
_DIRECTORIES = {
    "saved_model": "saved_models",
    "ctranslate2": "ctranslate2_models",
    "onnx": "onnx_models",
}


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "export",
        help="write a model for TensorFlow Serving, for CTranslate2 or as ONNX",
        description=(
            "Writes the best model of a run as a SavedModel in DIRECTORY/NAME/VERSION/, which\n"
            "TensorFlow Serving loads. Its inputs and outputs are texts: the SavedModel contains\n"
            "the tokenizer and the vocabulary. The settings below apply to the signature\n"
            "`continue` of language models and to the signature `translate` of models with\n"
            "sources. With --format ctranslate2, a Transformer is written for CTranslate2, whose\n"
            "inputs and outputs are tokens. With --format onnx, it is written as a file that maps\n"
            "token ids to log-probabilities."
        ),
        epilog=(
            "Examples:\n"
            "  keras-drill export runs/a\n"
            "  keras-drill export runs/a --name stories --sampler top-p --temperature 0.8\n"
            "  keras-drill export runs/de-en -n 3 --num-beams 8\n"
            "  keras-drill export runs/a --weights int8 --licence Apache-2.0\n"
            "  keras-drill export runs/de-en --format ctranslate2 --quantization int8"
        ),
    )
    add_run_argument(parser)
    add_checkpoint_argument(parser)
    parser.add_argument(
        "--directory",
        type=some_path,
        metavar="DIRECTORY",
        help="folder of exported models (default: saved_models, ctranslate2_models or "
        "onnx_models, by format)",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=folder_name,
        help="name of the model (default: name of the run's folder)",
    )
    parser.add_argument(
        "--version",
        type=whole_number(1, 2**63 - 1),
        metavar="N",
        help="version number (default: last version plus 1)",
    )
    _add_format_arguments(parser)
    parser.add_argument(
        "--sense-contexts",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="maximum number of training examples of each sense to store in the model, so that "
        "servers can show them (models whose words have senses; default: %(default)s)",
    )
    _add_card_arguments(parser)
    add_sampling_arguments(parser, default="greedy")
    add_search_arguments(parser, but=["max_tokens"])
    parser.set_defaults(saved_model_defaults=_of_saved_models(parser.parse_args(["RUN"])))
    return parser


def _add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--format`, and the type of the stored weights for each format."""
    parser.add_argument(
        "--format",
        choices=tuple(_DIRECTORIES),
        default="saved_model",
        help="saved_model for TensorFlow Serving, ctranslate2, or onnx (default: %(default)s)",
    )
    parser.add_argument(
        "--quantization",
        choices=("int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"),
        help="type of the stored weights with --format ctranslate2 (default: float32)",
    )
    parser.add_argument(
        "--weights",
        choices=("float32", "bfloat16", "float16", "int8"),
        default="float32",
        help="type of the stored weights of a SavedModel; the model card shows its effect on "
        "quality, size and time (default: %(default)s)",
    )


def _add_card_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--licence` and `--limit`, which appear on the model card."""
    parser.add_argument(
        "--licence",
        default="not stated",
        metavar="TEXT",
        help="licence of the model, for the model card (default: %(default)s)",
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="TEXT",
        help="a use that the model is not suitable for, to list on the model card; may be given "
        "several times",
    )


def run(args: argparse.Namespace) -> int:
    (config,) = check_runs([args.folder], args.checkpoint)
    _check_format(args, config)
    _check_settings(args, config)
    changes = search_changes(args, config) if config.reads_sources else {}
    directory = _directory(args)

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.tasks.make_sampler import make_sampler
    from keras_drill.workbench.training.export_run import (
        export_run,
        export_transformer,
    )
    from keras_drill.workbench.training.loaded_run import LoadedRun
    from keras_drill.workbench.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder), args.checkpoint, changes)
    on_card = {"licence": args.licence, "limits": args.limit}
    if args.format != "saved_model":
        kept = {"version": args.version, "quantization": args.quantization}
        print(export_transformer(loaded, directory, args.format, **kept, **on_card))
        return 0
    continuing: dict[str, Any] = {}
    if not config.reads_sources:
        k = min(args.k, len(loaded.vocabulary.tokens))
        continuing = {
            "sampler": make_sampler(args.sampler, args.temperature, k, args.p, args.min_p),
            "seed": args.seed,
            "max_tokens": args.max_tokens or MAX_TOKENS,
            "stop_strings": tuple(args.stop),
        }
    path = export_run(
        loaded,
        directory,
        version=args.version,
        weights=args.weights,
        sense_contexts=args.sense_contexts,
        **on_card,
        **continuing,
    )
    print(path)
    return 0


def _sampling(args: argparse.Namespace) -> dict[str, Any]:
    return {**sampler_settings(args), "stop": args.stop}


def _of_saved_models(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings that are stored in a SavedModel."""
    return {"weights": args.weights, "sense_contexts": args.sense_contexts, **_sampling(args)}


def _check_format(args: argparse.Namespace, config: RunConfig) -> None:
    """Raises `ConfigError` if the format does not support the model or a given option."""
    if args.quantization is not None and args.format != "ctranslate2":
        use = "use --weights" if args.format == "saved_model" else "ONNX files are float32"
        raise ConfigError(
            f"--quantization can be used only with --format ctranslate2: {use}. "
            f"Received: --quantization {args.quantization} with --format {args.format}"
        )
    if args.format == "saved_model":
        return
    if not config.reads_sources or config.backbone.kind != "transformer":
        raise ConfigError(
            f"--format {args.format} needs a Transformer: export other models as a SavedModel. "
            f"Received: {args.folder}, whose backbone is {config.backbone.kind}"
        )
    changed = [
        name
        for name, value in _of_saved_models(args).items()
        if value != args.saved_model_defaults[name]
    ]
    changed += given_search_arguments(args)
    if changed:
        instead = {
            "ctranslate2": "give settings of the search to CTranslate2 when it translates, and use "
            "--quantization for the type of the weights",
            "onnx": "the file has no search, and its weights are float32",
        }
        raise ConfigError(
            f"--{changed[0].replace('_', '-')} has no effect with --format {args.format}: "
            f"{instead[args.format]}"
        )


def _check_settings(args: argparse.Namespace, config: RunConfig) -> None:
    """Raises `ConfigError` for settings that have no effect on this kind of model."""
    if config.reads_sources:
        changed = [
            name
            for name, value in _sampling(args).items()
            if value != args.saved_model_defaults[name]
        ]
    else:
        changed = [name for name in given_search_arguments(args) if name != "max_tokens"]
    if args.sense_contexts and (config.reads_sources or not config.head.has_senses):
        raise ConfigError(
            f"--sense-contexts has no effect for {args.folder}: it needs a model that continues "
            "texts and whose words have senses"
        )
    if changed:
        does = "translates or answers texts" if config.reads_sources else "continues texts"
        raise ConfigError(
            f"--{changed[0].replace('_', '-')} has no effect for {args.folder}, whose model {does}"
        )


def _directory(args: argparse.Namespace) -> Path:
    """Returns the folder that will contain the version of the exported model."""
    name = Path(args.folder).resolve().name if args.name is None else args.name
    parent = _DIRECTORIES[args.format] if args.directory is None else args.directory
    directory = output_folder("--directory", parent) / name
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"--name must name a folder, not a file. Received: {directory}")
    if args.version is not None and (directory / str(args.version)).exists():
        raise ConfigError(
            "the folder of --version must not exist, because exports are never overwritten. "
            f"Received: {directory / str(args.version)}"
        )
    return directory
