"""`keras-drill generate`."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from keras_drill.workbench.cli.arguments import (
    MAX_TOKENS,
    add_checkpoint_argument,
    add_run_argument,
    add_sampling_arguments,
    check_continues,
    whole_number,
)
from keras_drill.workbench.cli.texts import (
    Text,
    TextReader,
    add_output_arguments,
    answers_to,
    batches,
    check_output,
)
from keras_drill.workbench.tasks.errors import ConfigError

_ROWS = 64  # texts in a batch


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "generate",
        help="continue texts with a model",
        description="Continues texts with the best model of a run, up to the end of the line.",
        epilog=(
            "Examples:\n"
            '  keras-drill generate runs/a "the"\n'
            '  keras-drill generate runs/a "the" -n 5 --temperature 0.8 --stop . --stop ";"\n'
            "  keras-drill generate runs/a --sampler top-k --k 20 --seed 3 < prompts.txt\n"
            "  keras-drill generate runs/a --format json --output answers.jsonl < prompts.txt\n"
            '  keras-drill generate runs/a -- "- a prompt that begins with a dash"'
        ),
    )
    add_run_argument(parser)
    add_checkpoint_argument(parser)
    parser.add_argument(
        "prompts",
        nargs="*",
        default=[],
        metavar="PROMPT",
        help="texts to continue (default: the lines of standard input)",
    )
    parser.add_argument(
        "-n",
        "--num-samples",
        type=whole_number(1, 10_000),
        default=1,
        metavar="N",
        help="texts to draw for each prompt (default: %(default)s)",
    )
    add_sampling_arguments(parser, default="top-p")
    add_output_arguments(parser, ("text", "json"))
    return parser


def run(args: argparse.Namespace) -> int:
    if args.num_samples > 1 and args.sampler == "greedy":
        raise ConfigError(
            f"-n {args.num_samples} needs a sampler with random choices, such as --sampler top-p, "
            "because greedy gives the same text each time"
        )
    check_continues(args.folder, args.checkpoint)
    check_output(args)
    reader = TextReader()
    blocks = [reader.arguments(args.prompts)] if args.prompts else reader.lines("-")

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.workbench.tasks.make_sampler import make_sampler
    from keras_drill.workbench.training.loaded_run import LoadedRun
    from keras_drill.workbench.training.run_folder import RunFolder

    loaded = LoadedRun.load(RunFolder(args.folder), args.checkpoint)
    k = min(args.k, len(loaded.vocabulary.tokens))
    sampler = make_sampler(args.sampler, args.temperature, k, args.p, args.min_p)
    text_model = loaded.continuing_task.text_model(
        loaded.model,
        loaded.vocabulary,
        sampler,
        args.seed,
        args.max_tokens or MAX_TOKENS,
        tuple(args.stop),
    )
    with answers_to(args.output) as file:
        for batch in batches(blocks, most=max(_ROWS // args.num_samples, 1)):
            for record in _continuations(text_model, batch, args.num_samples):
                if args.format == "text":
                    # Every prompt gives the same number of lines, so that lines can be aligned.
                    file.write((record["text"] if record else "") + "\n")
                elif record:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
            file.flush()
    return 1 if reader.passed_over else 0


def _continuations(
    text_model, batch: list[Text], num_samples: int
) -> Iterator[dict[str, Any] | None]:
    """Yields the record of each sample of each prompt; `None` for prompts that are not UTF-8."""
    import tensorflow as tf

    contents = tf.constant([prompt.content or "" for prompt in batch], tf.string)
    answers = text_model.continue_samples(contents, num_samples, batch[0].number - 1)
    answers = {name: one.numpy() for name, one in answers.items()}
    for row in range(len(batch) * num_samples):
        prompt = batch[row // num_samples]
        if prompt.content is None:
            yield None
            continue
        length = answers["lengths"][row]
        log_probs = answers["log_probs"][row, :length].tolist()
        yield {
            "number": prompt.number,
            "sample": row % num_samples + 1,
            "prompt": prompt.content,
            "continuation": answers["continuations"][row].decode(),
            "text": answers["texts"][row].decode(),
            "log_prob": round(sum(log_probs), 6),
            "words": [word.decode() for word in answers["words"][row, :length]],
            "log_probs": [round(log_prob, 6) for log_prob in log_probs],
        }
