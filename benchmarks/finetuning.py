"""Compares fine-tuning steps of keras-hub models with and without the fused loss.

    python -m benchmarks.finetuning --folder build/finetuning
    python -m benchmarks.finetuning --models gpt2 gemma3 --tokens 2048 --modes lora --backends jax
    python -m benchmarks.finetuning --models gemma3 --modes full --tile-mib 144

The models have the real vocabularies and widths, but one layer and random weights. Training uses
float32, SGD and sequences of 512 tokens. Two processes measure the increase in peak resident memory
during the second step, with TensorFlow's memory pools disabled. A third process alternates steps of
both variants to measure time, and compares losses and weights. Results in the folder are not
measured again. Steps of keras-hub that would need more than `--memory` GiB are skipped.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import describe, peak_memory

LENGTH = 512
_WIDE = {"num_layers": 1, "dropout": 0.0}
# Family, and sizes of GPT-2, Llama 3.2 1B, Qwen 3 0.6B and Gemma 3 270M but for their depth.
MODELS = {
    "gpt2": (
        "GPT2",
        {
            **_WIDE,
            "vocabulary_size": 50257,
            "hidden_dim": 768,
            "intermediate_dim": 3072,
            "num_heads": 12,
            "max_sequence_length": LENGTH,
        },
    ),
    "llama3": (
        "Llama3",
        {
            **_WIDE,
            "vocabulary_size": 128256,
            "hidden_dim": 2048,
            "intermediate_dim": 8192,
            "num_query_heads": 32,
            "num_key_value_heads": 8,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3": (
        "Qwen3",
        {
            **_WIDE,
            "vocabulary_size": 151936,
            "hidden_dim": 1024,
            "intermediate_dim": 3072,
            "num_query_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "tie_word_embeddings": True,
        },
    ),
    "gemma3": (
        "Gemma3",
        {
            **_WIDE,
            "vocabulary_size": 262144,
            "hidden_dim": 640,
            "intermediate_dim": 2048,
            "num_query_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "image_size": None,
        },
    ),
}
SIDES = ("keras-hub", "fused")


def make_model(
    name: str, mode: str, side: str, tile_mib: int | None, vocabulary_size: int | None = None
):
    """A compiled model, the same whenever it is made."""
    import keras
    import keras_hub

    import keras_drill

    family, arguments = MODELS[name]
    if vocabulary_size is not None:
        arguments = {**arguments, "vocabulary_size": vocabulary_size}
    keras.utils.set_random_seed(0)
    backbone = getattr(keras_hub.models, f"{family}Backbone")(**arguments)
    if mode == "lora":
        backbone.enable_lora(4)
    lm = getattr(keras_hub.models, f"{family}CausalLM")(backbone=backbone, preprocessor=None)
    model = lm
    if side == "fused":
        tile_bytes = None if tile_mib is None else tile_mib * 2**20
        model = keras_drill.LanguageModel.from_causal_lm(lm, tile_bytes=tile_bytes)
    model.compile(keras.optimizers.SGD(0.1), weighted_metrics=[])
    return model


def make_batch(tokens: int, vocabulary_size: int) -> tuple:
    words = np.random.default_rng(1).integers(0, vocabulary_size, (tokens // LENGTH, LENGTH + 1))
    inputs = {"token_ids": words[:, :-1], "padding_mask": np.ones_like(words[:, 1:])}
    return {k: x.astype("int32") for k, x in inputs.items()}, words[:, 1:].astype("int32")


def measure_memory(name: str, tokens: int, mode: str, side: str, tile_mib: int | None) -> dict:
    """Bytes by which the second step raises the peak over what the model takes by itself."""
    # Libraries, threads and compilers come first.
    small = make_model(name, mode, side, tile_mib, vocabulary_size=8192)
    small.train_on_batch(*make_batch(LENGTH, 8192))
    model = make_model(name, mode, side, tile_mib)
    batch = make_batch(tokens, MODELS[name][1]["vocabulary_size"])
    before = resident()
    model.train_on_batch(*batch)
    between = resident()
    second = peak_memory(lambda: model.train_on_batch(*batch))
    return {"rise": second + between - before, "kept": between - before}


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def measure_time(
    name: str, tokens: int, mode: str, sides: list[str], tile_mib: int | None, steps: int
) -> dict:
    """Seconds and losses of every step, and how far weights are apart after the last."""
    models = {side: make_model(name, mode, side, tile_mib) for side in sides}
    batch = make_batch(tokens, MODELS[name][1]["vocabulary_size"])
    found = {side: {"seconds": [], "losses": []} for side in sides}
    for _ in range(steps):
        for side, model in models.items():
            start = time.perf_counter()
            found[side]["losses"].append(float(np.asarray(model.train_on_batch(*batch)).ravel()[0]))
            found[side]["seconds"].append(time.perf_counter() - start)
    if len(models) == 2:
        weights = [model.backbone.trainable_weights for model in models.values()]
        pairs = zip(*weights, strict=True)
        found["weights"] = max(distance(a, b) for a, b in pairs)
    return found


def distance(a, b) -> float:
    """The largest difference of two weights, relative to the largest entry.

    Below 1e-6 there is only rounding: in biases of keys, on which no attention depends.
    """
    a, b = np.asarray(a.value), np.asarray(b.value)
    largest = max(1e-6, *(float(np.abs(x).max(initial=0)) for x in np.array_split(a, 64)))
    parts = zip(np.array_split(a, 64), np.array_split(b, 64), strict=True)
    return max(float(np.abs(x - y).max(initial=0)) for x, y in parts) / largest


def theirs_in_bytes(name: str, tokens: int) -> int:
    """About what a step of keras-hub takes: logits, whose gradient takes their place in parts, and
    the table's two gradients."""
    sizes = MODELS[name][1]
    return int(4 * (1.5 * tokens + 2 * sizes["hidden_dim"]) * sizes["vocabulary_size"])


def in_process(backend: str, is_memory: bool, *arguments: str) -> dict:
    """What `run_case` found, with that backend."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if is_memory:
        environment |= {"TF_ENABLE_ONEDNN_OPTS": "0", "MALLOC_MMAP_THRESHOLD_": "500000"}
    command = [sys.executable, "-m", "benchmarks.finetuning", "--case", *arguments]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(result.stdout.splitlines()[-1])


def measure(file: Path, backend: str, case: list, more: list, sides: tuple, steps: int) -> dict:
    """Memory and time of a case; what `file` has is not measured again, nor what is written to it
    as soon as it is known."""
    from keras_drill.data.atomic import replace_file

    found = json.loads(file.read_text()) if file.exists() else {"memory": {}}
    for side in sides:
        if side not in found["memory"]:
            found["memory"][side] = in_process(backend, True, *case, side, *more)
            replace_file(file, json.dumps(found))
    if steps and "fused" not in found:
        found |= in_process(backend, False, *case, ",".join(sides), str(steps), *more)
        replace_file(file, json.dumps(found))
    return found


def row(case: str, found: dict) -> str:
    """A line of the table in the documentation."""
    mib = {side: round(memory["rise"] / 2**20) for side, memory in found["memory"].items()}
    share = f"1/{mib['keras-hub'] / max(1, mib['fused']):.1f}" if len(mib) == 2 else ""
    theirs = f"{mib['keras-hub']:,}" if len(mib) == 2 else "does not fit"
    cells = [case, theirs, f"{mib['fused']:,}", share]
    seconds = [statistics.median(found[s]["seconds"][2:]) for s in SIDES if s in found]
    if len(seconds) == 2:
        pairs = zip(*(found[side]["losses"] for side in SIDES), strict=True)
        losses = max(abs(a - b) / a for a, b in pairs)
        cells += [f"{x:.1f}" for x in seconds]
        cells += [f"{seconds[0] / seconds[1]:.2f}", f"{losses:.0e}", f"{found['weights']:.0e}"]
    elif seconds:
        cells += ["", f"{seconds[0]:.1f}"]
    return f"| {' | '.join(cells)} |"


def run_case(arguments: list[str], tile_mib: int | None) -> dict:
    """What `measure` asks of a process of its own."""
    name, tokens, mode, sides, *steps = arguments
    if steps:
        return measure_time(name, int(tokens), mode, sides.split(","), tile_mib, int(steps[0]))
    return measure_memory(name, int(tokens), mode, sides, tile_mib)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.finetuning")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--tokens", nargs="+", type=int, default=[2048, 8192])
    parser.add_argument("--modes", nargs="+", default=["full", "lora"])
    parser.add_argument("--backends", nargs="+", default=["tensorflow", "jax"])
    parser.add_argument(
        "--steps", type=int, default=10, help="steps to time and to compare, 3 or more; 0: memory"
    )
    parser.add_argument("--memory", type=float, default=10, help="GiB that a step may take")
    parser.add_argument("--tile-mib", type=int, help="`tile_bytes`, where it has tiles")
    parser.add_argument("--folder", type=Path, default=Path("build/finetuning"))
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_case(options.case, options.tile_mib)))
        return
    if 0 < options.steps < 3:
        parser.error(f"--steps must be 0, or 3 or more. Received: --steps {options.steps}")
    options.folder.mkdir(parents=True, exist_ok=True)
    print(describe(), flush=True)
    cases = itertools.product(options.backends, options.modes, options.tokens, options.models)
    for backend, mode, tokens, name in cases:
        case = f"{backend} {mode} {name} {tokens}"
        more = []
        if options.tile_mib is not None:
            case += f" tile {options.tile_mib}"
            more = ["--tile-mib", str(options.tile_mib)]
        fits = theirs_in_bytes(name, tokens) < options.memory * 2**30
        sides = SIDES if fits else SIDES[1:]
        file = options.folder / f"{case.replace(' ', '-')}.json"
        arguments = [name, str(tokens), mode]
        print(row(case, measure(file, backend, arguments, more, sides, options.steps)), flush=True)


if __name__ == "__main__":
    main()
