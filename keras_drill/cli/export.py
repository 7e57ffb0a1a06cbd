"""`keras-drill export`."""

import argparse
from pathlib import Path

from keras_drill.cli.sampling_arguments import add_sampling_arguments, check_sampling_arguments


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "export",
        help="write a model as a SavedModel that takes and gives text",
        description=(
            "Writes the best model of a run as DIRECTORY/NAME/VERSION/, which TensorFlow Serving\n"
            "loads: text in, text out, with the tokenizer and the vocabulary inside. The settings\n"
            "below are those of the signature `continue`."
        ),
    )
    parser.add_argument("folder", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--directory",
        default="saved_models",
        help="where models are kept (default: %(default)s)",
    )
    parser.add_argument("--name", help="name of the model (default: that of the run's folder)")
    parser.add_argument(
        "--version",
        type=int,
        metavar="N",
        help="number of the version (default: one more than the last)",
    )
    add_sampling_arguments(parser, default="greedy")
    return parser


def run(args: argparse.Namespace) -> int:
    check_sampling_arguments(args)

    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    from keras_drill.export import export_saved_model
    from keras_drill.training.loaded_run import LoadedRun, make_sampler
    from keras_drill.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder))
    path = export_saved_model(
        loaded.model,
        Path(args.directory) / (args.name or loaded.folder.name),
        loaded.tokenizer,
        loaded.vocabulary,
        version=args.version,
        sampler=make_sampler(args.sampler, args.temperature, args.k, args.p),
        seed=args.seed,
        max_new_tokens=args.max_tokens,
        k=min(10, len(loaded.vocabulary)),
    )
    print(path)
    return 0
