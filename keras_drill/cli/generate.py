"""`keras-drill generate`."""

import argparse
import sys

from keras_drill.cli.sampling_arguments import add_sampling_arguments, check_sampling_arguments


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "generate",
        help="let a model continue texts",
        description="Lets the best model of a run continue texts, up to the end of the line.",
        epilog=(
            "Examples:\n"
            '  keras-drill generate runs/a "the"\n'
            "  keras-drill generate runs/a --sampler top-k --k 20 --seed 3 < prompts.txt"
        ),
    )
    parser.add_argument("folder", metavar="RUN", help="folder of the run")
    parser.add_argument(
        "prompts",
        nargs="*",
        metavar="PROMPT",
        help="texts to continue; without any, the lines of the standard input",
    )
    add_sampling_arguments(parser, default="top-p")
    return parser


def run(args: argparse.Namespace) -> int:
    check_sampling_arguments(args)
    prompts = args.prompts or [line.rstrip("\n") for line in sys.stdin]

    from keras_drill.cli.quiet_tensorflow import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    from keras_drill.training.loaded_run import LoadedRun, make_sampler
    from keras_drill.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder))
    sampler = make_sampler(args.sampler, args.temperature, args.k, args.p)
    text_model = loaded.text_model(sampler, args.seed, args.max_tokens)
    for text in text_model.continue_text(tf.constant(prompts, tf.string))["texts"].numpy():
        print(text.decode())
    return 0
