"""Compares a small language model distilled from a larger one with the same model trained alone.

    python -m benchmarks.distillation_study --folder build/distillation-study

For each seed, a teacher is trained on the demo's text until validation stops improving. Then
students start with the same weights and see the same batches. One learns from the targets alone,
the others from targets and teacher with each divergence. The epoch with the best validation is
tested. `--one-teacher` trains a single teacher for the students of all seeds. The same command
resumes an interrupted study.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import keras

import keras_drill
from benchmarks.compare_recipes import interval
from benchmarks.new_heads import load, train
from benchmarks.side_by_side import write_table
from keras_drill.data import WhitespaceTokenizer, WordTokenizer
from keras_drill.models import AWDLSTM

SPLITS = ("valid", "test")
TOKENIZERS = {"words": WordTokenizer, "whitespace": WhitespaceTokenizer}
TEACHER, STUDENT = {"embedding_dim": 256, "units": 512}, {"embedding_dim": 64, "units": 96}
STUDENTS = {
    "alone": None,
    "forward KL": {"divergence": "forward_kl"},
    "forward KL, temperature 2": {"divergence": "forward_kl", "temperature": 2.0},
    "reverse KL": {"divergence": "reverse_kl"},
    "Jensen-Shannon": {"divergence": "jensen_shannon"},
}


def language_model(vocabulary_size: int, seed: int, dropout: float, **sizes: int):
    keras.utils.set_random_seed(seed)
    backbone = AWDLSTM(
        vocabulary_size,
        num_layers=2,
        dropout=dropout,
        hidden_dropout=dropout,
        input_dropout=dropout,
        embedding_dropout=0.0,
        weight_dropout=dropout,
        seed=seed,
        **sizes,
    )
    backbone.build((None, None))
    head = keras_drill.TiedOutput(vocabulary_size, backbone.embedding)
    return keras_drill.LanguageModel(backbone, head)


def measure(options: argparse.Namespace, size: int, ids: dict, seed: int) -> dict:
    """Results of a seed, by model."""
    of_teacher = options.seeds[0] if options.one_teacher else seed
    weights = options.folder / f"teacher-{of_teacher}.weights.h5"
    found = {}
    for name in ("teacher", *options.students):
        trained = of_teacher if name == "teacher" else seed
        file_name = f"{name.replace(' ', '-').replace(',', '')}-{trained}.json"
        results = options.folder / file_name
        if not results.exists():
            if name == "teacher":
                model = language_model(size, trained, 0.3, **TEACHER)
                result = train(model, ids, weights, 0.003, options.at_most, 2, trained)
            else:
                model = language_model(size, seed, 0.1, **STUDENT)
                if (arguments := STUDENTS[name]) is not None:
                    teacher = language_model(size, of_teacher, 0.3, **TEACHER)
                    teacher.load_weights(weights)
                    teacher.trainable = False
                    model = keras_drill.Distiller(teacher, model, **arguments)
                file = results.with_suffix(".weights.h5")
                result = train(model, ids, file, 0.003, options.epochs, math.inf, seed)
            results.write_text(json.dumps(result))
        found[name] = json.loads(results.read_text())
        print(f"seed {seed}, {name}: {found[name]}", flush=True)
    return found


def row(name: str, found: Sequence[dict]) -> list:
    """Mean perplexities of a model, and of their differences from those of the student alone."""
    values = {split: [results[name][split] for results in found] for split in SPLITS}
    beyond: list | str = ""
    if name != "alone" and name in STUDENTS and "alone" in found[0]:
        beyond = interval([results[name]["test"] - results["alone"]["test"] for results in found])
    return [name, *map(interval, values.values()), beyond]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distillation_study")
    parser.add_argument("--folder", type=Path, default=Path("build/distillation-study"))
    parser.add_argument("--data", help="a text; without, the demo's")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, default="words")
    parser.add_argument("--one-teacher", action="store_true", help="the first seed's, for all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--students", nargs="+", default=list(STUDENTS), choices=STUDENTS)
    parser.add_argument("--epochs", type=int, default=20, help="of the students")
    parser.add_argument("--at-most", type=int, default=25, help="epochs of the teacher")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    size, ids = load(options.folder, options.data, TOKENIZERS[options.tokenizer]())
    print(f"{size:,} words, {len(ids['train']):,} tokens", flush=True)
    found = [measure(options, size, ids, seed) for seed in options.seeds]
    rows = [
        row(name, found[:1] if name == "teacher" and options.one_teacher else found)
        for name in found[0]
    ]
    columns = ["model", "validation perplexity", "test perplexity", "test perplexity beyond alone"]
    table = {"columns": columns, "rows": rows}
    write_table("benchmarks.distillation_study", "test-perplexity", table, options.json)


if __name__ == "__main__":
    main()
