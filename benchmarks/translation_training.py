"""Compares translation training with JoeyNMT: tokens per second, or BLEU after equal updates.

    python -m benchmarks.translation_training RUN --joeynmt PYTHON [--batches 40] [--rounds 5]
    python -m benchmarks.translation_training RUN --joeynmt PYTHON --train FOLDER [--epochs 14]

RUN is a run of translation with tied embeddings (`small-translation-tied`,
`small-translation-transformer-tied`): JoeyNMT gets the same vocabulary, batches, sizes, dropout and
learning rates. PYTHON is an interpreter with joeynmt. The second command only trains JoeyNMT, keeps
a checkpoint of each epoch in FOLDER, resumes from the last one, and translates the test split.

Differences: JoeyNMT's output layer has no bias. Its label smoothing is over V - 2 words. Its
recurrent encoder has one bridge for state and cell, draws a new dropout mask for each word, and
uses other initial values.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.peer import Peer
from benchmarks.timing import alternate, describe, median_ratio

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--joeynmt", metavar="PYTHON", required=True)
    parser.add_argument("--data", help="where the run's corpus is now")
    parser.add_argument("--batches", type=int, default=40, help="how many are trained on a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--train", metavar="FOLDER", type=Path, help="train JoeyNMT, for its BLEU")
    parser.add_argument("--epochs", type=int, help="default: as many as the run")
    parser.add_argument("--seed", type=int, default=0, help="of JoeyNMT's initial values")
    arguments = parser.parse_args()
    print(describe())
    run = Run(arguments)
    if arguments.train:
        compare_scores(run, arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        compare_speed(run, arguments, Path(folder))


class Run:
    """The options, words, texts and batches of a run."""

    def __init__(self, arguments: argparse.Namespace):
        from keras_drill.workbench.tasks.make_task import make_task
        from keras_drill.workbench.training.run_folder import RunFolder

        self.config = RunFolder(arguments.run).config()
        if self.config.head.kind != "tied":
            sys.exit(f"the run's head must be tied. Received: {self.config.head.kind}")
        self.task = make_task(self.config)
        self.vocabulary = self.task.load_vocabulary(arguments.run)
        self.texts = self.task.read_texts(self.vocabulary, arguments.data)
        self.batches = self.task.training_batches(self.vocabulary, self.texts["train"])
        self.seed = arguments.seed

    def write_settings(self, folder: Path) -> None:
        """All that JoeyNMT is told."""
        from keras_drill.workbench.training.build_optimizer import step_learning_rate

        rate = step_learning_rate(self.config, self.batches)
        steps = range(self.config.training.epochs * self.batches.num_batches)
        vocabulary = self.vocabulary.target.vocabulary
        decoding = self.config.decoding
        settings = {
            "seed": self.seed,
            "words": {
                "size": len(vocabulary),
                "pad": vocabulary.pad_id,
                "unknown": vocabulary.unknown_id,
                "start": vocabulary.start_id,
                "end": vocabulary.end_id,
            },
            "model": joeynmt_model(self.config.backbone),
            "label_smoothing": self.config.head.label_smoothing,
            "beta_2": self.config.optimizer.beta_2,
            "clip_norm": self.config.optimizer.clip_norm or float("inf"),
            "learning_rates": [float(rate(s) if callable(rate) else rate) for s in steps],
            "num_beams": decoding.num_beams,
            "length_penalty": decoding.length_penalty,
            "max_tokens": decoding.max_tokens,
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def write_batches(self, path: Path, epoch: int, number: int | None = None) -> int:
        """Writes batches of an epoch; returns how many targets they have."""
        return write_pairs(path, itertools.islice(self.batches.dataset(epoch), number))


def write_pairs(path: Path, batches) -> int:
    """Writes sources and targets; returns how many targets there are."""
    arrays, count = {}, 0
    for i, (inputs, labels, weights) in enumerate(batches):
        starts, labels = inputs["target"].numpy()[:, :1], labels.numpy()
        arrays[f"source-{i}"] = inputs["source"].numpy().astype("int32")
        arrays[f"target-{i}"] = np.concatenate([starts, labels], axis=1).astype("int32")
        count += int(weights.numpy().sum())
    np.savez(path, **arrays)
    return count


def joeynmt_model(options) -> dict:
    """JoeyNMT's section `model` for a backbone."""
    if options.kind == "recurrent" and (
        (options.cell, options.attention, options.bidirectional) != ("lstm", "general", True)
        or options.units != options.embedding_dim
    ):
        sys.exit("JoeyNMT's part needs cell=lstm, attention=general, units=embedding_dim")
    embeddings = {"embedding_dim": options.embedding_dim, "dropout": options.dropout}
    side = {"num_layers": options.num_layers, "dropout": options.dropout}
    if options.kind == "recurrent":
        side |= {"type": "recurrent", "rnn_type": "lstm", "hidden_size": options.units}
        side |= {"embeddings": {**embeddings, "scale": False}}
        decoder = {"attention": "luong", "input_feeding": options.input_feeding}
        decoder |= {"hidden_dropout": options.dropout, "init_hidden": "bridge"}
        sides = {"encoder": {**side, "bidirectional": True}, "decoder": {**side, **decoder}}
    else:
        side |= {"type": "transformer", "hidden_size": options.embedding_dim}
        side |= {"ff_size": options.feed_forward_dim, "num_heads": options.num_heads}
        side |= {"layer_norm": "pre" if options.norm_first else "post"}
        side |= {"embeddings": {**embeddings, "scale": True}}
        sides = {"encoder": side, "decoder": side}
    ties = {"tied_embeddings": True, "tied_softmax": True}
    return {**sides, **ties, "embed_initializer": "normal", "embed_init_weight": 0.05}


def compare_speed(run: Run, arguments: argparse.Namespace, folder: Path) -> None:
    import keras_drill
    from keras_drill.workbench.training.build_optimizer import build_optimizer

    model = run.task.build_model(run.vocabulary)
    model.compile(
        build_optimizer(run.config, run.batches), metrics=[keras_drill.metrics.Perplexity()]
    )
    dataset = run.batches.dataset().take(arguments.batches)
    run.write_settings(folder)
    targets = run.write_batches(folder / "speed.npz", 0, arguments.batches)
    peer = Peer(arguments.joeynmt, "benchmarks.joeynmt_peer", str(folder))
    print(f"{model.count_params():,} parameters, JoeyNMT's {int(peer('parameters')):,}")
    functions = {
        "keras_drill": lambda: model.fit(dataset, verbose=0),
        "JoeyNMT": lambda: peer("set"),
    }
    seconds = alternate(functions, arguments.rounds)
    for name, times in seconds.items():
        print(f"{name:12}{targets / statistics.median(times):10,.0f} target tokens/s")
    ratio = median_ratio(seconds["JoeyNMT"], seconds["keras_drill"])
    print(f"{ratio:.2f} times JoeyNMT, the median of {arguments.rounds} rounds")


def compare_scores(run: Run, arguments: argparse.Namespace) -> None:
    folder = arguments.train
    folder.mkdir(parents=True, exist_ok=True)
    run.write_settings(folder)
    peer = Peer(arguments.joeynmt, "benchmarks.joeynmt_peer", str(folder))
    for epoch in range(arguments.epochs or run.config.training.epochs):
        if not (folder / f"joeynmt-{epoch}.pt").exists():
            run.write_batches(folder / f"epoch-{epoch}.npz", epoch)
        print(f"epoch {epoch + 1}: training loss {peer(f'epoch {epoch}')}", flush=True)
        (folder / f"epoch-{epoch}.npz").unlink(missing_ok=True)
    test = run.task.evaluation_batches(run.vocabulary, run.texts["test"])
    write_pairs(folder / "test.npz", test.dataset())
    print(f"JoeyNMT: perplexity {peer('perplexity')} on the test split")
    order = write_sources(run, folder)
    peer("answer")
    report_scores(run, folder, order)


def write_sources(run: Run, folder: Path) -> list[np.ndarray]:
    """The sources of the test split in batches; returns which lines each of them has."""
    batches = run.task.evaluation_batches(run.vocabulary, run.texts["test"])
    arrays, sizes = {}, []
    for number, (inputs, *_) in enumerate(batches.dataset()):
        arrays[f"{number:04}"] = inputs["source"].numpy().astype("int32")
        sizes.append(len(arrays[f"{number:04}"]))
    np.savez(folder / "sources.npz", **arrays)
    return np.split(batches.order, np.cumsum(sizes)[:-1])


def report_scores(run: Run, folder: Path, order: list[np.ndarray]) -> None:
    from keras_drill.export import Side
    from keras_drill.metrics import score_texts

    side = Side(run.vocabulary.target.tokenizer, run.vocabulary.target.vocabulary)
    lines = run.texts["test"].lines.target
    references = [line.decode() for line in lines]
    answers = [""] * len(references)
    with np.load(folder / "answers.npz") as arrays:
        for name, rows in zip(sorted(arrays.files), order, strict=True):
            for row, text in zip(
                rows, side.decode(arrays[name].astype("int32")).numpy(), strict=True
            ):
                answers[row] = text.decode()
    (folder / "answers.txt").write_text("\n".join(answers) + "\n", encoding="utf-8")
    scores = score_texts(answers, references, **run.answering_task.scoring)
    print(f"JoeyNMT: BLEU {scores.bleu:.2f}, chrF {scores.chrf:.2f} on the test split")


if __name__ == "__main__":
    main()
