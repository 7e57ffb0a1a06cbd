"""Compares the translations of an exported run with those of Python: SavedModel and CTranslate2.

    python -m benchmarks.exported_translations RUN --data FOLDER --json found.json

RUN is a run of translation with a Transformer, and FOLDER has its test set. Every engine translates
the whole test set with greedy search and with five beams, on one thread. Translations that differ
from Python's are scored by the model in Python, as by `keras-drill score`: an engine with another
search finds more probable and less probable translations, and one with other arithmetic also
differs in greedy search. Speed is measured in processor time, tokenization included.
"""

import argparse
import dataclasses
import json
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import alternate, describe
from keras_drill.decoding import BeamSearch
from keras_drill.metrics.text_scores import score_texts
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.export_run import export_run, export_transformer
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder

# Number of beams and length penalty by search. Each program has a length penalty of its own.
SEARCHES = {"greedy": (1, 0.0), "5 beams": (5, 0.0), "5 beams, length penalty": (5, 1.0)}
# CTranslate2 does not have these options.
_PLAIN = {
    "decoding.num_results": 1,
    "decoding.num_groups": 1,
    "decoding.coverage_penalty": 0.0,
    "decoding.max_ratio": 0.0,
}
QUANTIZATIONS = {"CTranslate2": None, "CTranslate2, int8": "int8"}
_SAME = 1e-4  # log-probabilities that differ by less are the same

Engine = Callable[[Sequence[str]], tuple[list[str], np.ndarray]]  # texts and log-probabilities


@dataclasses.dataclass
class Measured:
    """What an engine does with a search.

    Attributes:
        texts: The translations.
        log_probs: Their scores by the engine, log-probabilities unless there is a length penalty.
        seconds: Processor time of all translations.
    """

    texts: list[str]
    log_probs: np.ndarray
    seconds: float


def with_search(run: LoadedRun, num_beams: int, length_penalty: float) -> LoadedRun:
    """The same run with another search."""
    changes = {"decoding.num_beams": num_beams, "decoding.length_penalty": length_penalty}
    config = run.config.replace({**_PLAIN, **changes})
    return dataclasses.replace(run, config=config, task=make_task(config))


def translator_of(run: LoadedRun) -> Any:
    return run.answering_task.translator(run.model, run.vocabulary, run.task.make_search())


def python_engine(run: LoadedRun) -> Engine:
    translator = translator_of(run)
    return lambda lines: _best(translator.answer(np.array(lines, object)))


def saved_model_engine(run: LoadedRun, folder: Path) -> Engine:
    import tensorflow as tf

    loaded = tf.saved_model.load(str(export_run(run, folder)))
    return lambda lines: _best(loaded.signatures["translate"](texts=tf.constant(lines)))


def _best(answers: dict[str, Any]) -> tuple[list[str], np.ndarray]:
    texts = [text.decode() for text in answers["texts"].numpy()[:, 0]]
    return texts, answers["log_probs"].numpy()[:, 0]


def ctranslate2_engine(run: LoadedRun, folder: Path) -> Engine:
    import ctranslate2

    program = ctranslate2.Translator(str(folder), intra_threads=1)
    source, target = (run.task.coders(run.vocabulary)[side][0] for side in ("source", "target"))
    decoding = run.config.decoding

    def translate(lines: Sequence[str]) -> tuple[list[str], np.ndarray]:
        results = program.translate_batch(
            [[word.decode() for word in row] for row in source.tokenize(lines).to_list()],
            beam_size=decoding.num_beams,
            length_penalty=decoding.length_penalty,
            max_input_length=run.config.max_source_tokens,
            max_decoding_length=decoding.max_tokens,
            min_decoding_length=0,
            disable_unk=True,
            return_scores=True,
        )
        texts = [target.detokenize(result.hypotheses[0]).numpy().decode() for result in results]
        return texts, np.array([result.scores[0] for result in results])

    return translate


def measure(
    engines: dict[str, Engine], lines: Sequence[str], batch: int, rounds: int
) -> dict[str, Measured]:
    """Translates all lines with each engine, in batches of similar lengths."""
    order = np.argsort([-len(line.split()) for line in lines], kind="stable")
    batches = [order[start : start + batch] for start in range(0, len(order), batch)]
    found: dict[str, Measured] = {}

    def translate_all(name: str) -> None:
        texts, log_probs = np.empty(len(lines), object), np.empty(len(lines))
        for rows in batches:
            texts[rows], log_probs[rows] = engines[name]([lines[row] for row in rows])
        found[name] = Measured(texts.tolist(), log_probs, 0.0)

    functions = {name: lambda name=name: translate_all(name) for name in engines}
    for name, seconds in alternate(functions, rounds, clock=time.process_time).items():
        found[name].seconds = statistics.median(seconds)
    return found


def score_lines(run: LoadedRun, sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
    """Scores of translations by the model in Python, by which its own search ranks them."""
    translator, penalty = translator_of(run), BeamSearch(5, run.config.decoding.length_penalty)
    scores = [np.zeros(0)]
    for start in range(0, len(sources), 32):
        part = slice(start, start + 32)
        told = translator.score(list(sources[part]), list(targets[part]))
        scores.append(told["total_log_probs"].numpy() / penalty.penalty(told["lengths"].numpy()))
    return np.concatenate(scores)


def compare(
    run: LoadedRun, sources: Sequence[str], own: Measured, other: Measured
) -> tuple[int, int, int]:
    """Numbers of translations that differ, and that the model finds better, and worse."""
    rows = [row for row in range(len(sources)) if own.texts[row] != other.texts[row]]
    theirs, ours = (
        score_lines(run, [sources[row] for row in rows], [each.texts[row] for row in rows])
        for each in (other, own)
    )
    return len(rows), int((theirs > ours + _SAME).sum()), int((theirs < ours - _SAME).sum())


def largest_difference(own: Measured, other: Measured) -> float:
    """Largest difference of the log-probabilities of equal translations."""
    same = np.array(own.texts) == np.array(other.texts)
    return float(np.abs(own.log_probs - other.log_probs)[same].max(initial=0))


def size_of(folder: Path) -> float:
    """Megabytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.glob("**/*") if path.is_file()) / 1e6


def study(run: LoadedRun, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The tables `differences` and `costs`."""
    pairs = run.task.read_pairs(options.data)["test"]
    sources, references = (
        [line.decode() for line in side][: options.sentences]
        for side in (pairs.source, pairs.target)
    )
    exported = {
        name: export_transformer(run, folder / name, "ctranslate2", quantization=quantization)
        for name, quantization in QUANTIZATIONS.items()
    }
    differences, speeds = [], {}
    for search, (num_beams, length_penalty) in SEARCHES.items():
        searching = with_search(run, num_beams, length_penalty)
        saved = folder / search
        engines = {
            "Python": python_engine(searching),
            "SavedModel": saved_model_engine(searching, saved),
            **{name: ctranslate2_engine(searching, path) for name, path in exported.items()},
        }
        found = measure(engines, sources, options.batch, options.rounds)
        for name, measured in found.items():
            row: list[Any] = [search, name, None, None, None, None]
            if name != "Python":
                row[2:5] = compare(searching, sources, found["Python"], measured)
                if not length_penalty:
                    row[5] = float(f"{largest_difference(found['Python'], measured):.1g}")
            scores = score_texts(measured.texts, references, **run.task.scoring)
            differences.append([*row, round(scores.bleu, 2)])
            speeds.setdefault(name, []).append(round(len(sources) / measured.seconds, 1))
            print(differences[-1], speeds[name][-1], flush=True)
    sizes = {name: size_of(path) for name, path in exported.items()} | {
        "SavedModel": size_of(saved)
    }
    costs = [
        [name, round(sizes[name], 1) if name in sizes else None, *figures]
        for name, figures in speeds.items()
    ]
    columns = ["search", "program", "differ from Python", "of these more probable"]
    columns += ["less probable", "largest difference of log-probability", "BLEU"]
    speed_columns = [f"{search}, sentences/s" for search in SEARCHES]
    return {
        "differences": {"columns": columns, "rows": differences},
        "costs": {"columns": ["program", "MB on disk", *speed_columns], "rows": costs},
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exported_translations")
    parser.add_argument("run", type=Path, help="a run of translation with a Transformer")
    parser.add_argument("--data", required=True, help="what `keras-drill train --data` takes")
    parser.add_argument("--folder", type=Path, help="where to keep the exported models")
    parser.add_argument("--sentences", type=int, help="of the test set (default: all)")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write what was found, as files under results/")
    options = parser.parse_args(argv)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    run = LoadedRun.load(RunFolder(options.run))
    with tempfile.TemporaryDirectory() as folder:
        tables = study(run, options, options.folder or Path(folder))
    config = run.config
    result = {
        "command": shlex.join(
            ["python", "-m", "benchmarks.exported_translations", *(argv or sys.argv[1:])]
        ),
        "hardware": f"one thread of {describe()}",
        "seeds": [config.training.seed],
        "model": f"{config.backbone.num_layers} + {config.backbone.num_layers} layers of "
        f"{config.backbone.embedding_dim}, V = {run.model.head.vocabulary_size:,}, "
        f"{config.output_layer}; batches of {options.batch}",
        "tables": tables,
    }
    text = json.dumps(result, indent=2, ensure_ascii=False)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
