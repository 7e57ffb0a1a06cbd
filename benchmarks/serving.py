"""Measures exported models alone, behind the development server, and from a cold start.

    python -m benchmarks.serving [--vocabulary 10000] [--width 200] [--units 400] [--words 50]

The weights are random and no end token is written, so that all models do the same work. There are
three tables:

- processor time of one prompt and one text at a time in this process, alternating between models;
- `keras-drill serve` in a separate process, with requests from another process, with and without
  batching;
- time from loading a model to its first outputs, with and without the exported warm-up requests.

"DRILL, unfolded" computes its labels at every call, which no export of this package does.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from benchmarks.timing import alternate, describe, in_fresh_process, median_ratio

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
PROMPT, TEXT = "w1 w2 w3 w4 w5", " ".join(f"w{number}" for number in range(1, 36))
MODELS = {
    "tied": "tied",
    "DRILL, folded": "drill",
    "DRILL, unfolded": "unfolded",
    "KerBS": "kerbs",
    "tied, bfloat16": "bfloat16",
    "tied, int8": "int8",
}
SERVED = {"tied": "tied", "DRILL, folded": "drill", "KerBS": "kerbs"}
STARTED_COLD = ("tied", "drill")


def main() -> None:
    arguments = parse_arguments()
    if arguments.cold:
        print(json.dumps(cold_start(Path(arguments.cold))))
        return
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS.values() if "latency" in arguments.tables else SERVED.values():
            export(name, Path(folder), arguments)
        for table in arguments.tables:
            TABLES[table](Path(folder), arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=200)
    parser.add_argument("--units", type=int, default=400)
    parser.add_argument("--depth", type=int, default=4, help="layers of the DRILL encoder")
    parser.add_argument("--words", type=int, default=50, help="of a continuation")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=192)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--cold", metavar="FOLDER", help=argparse.SUPPRESS)
    return parser.parse_args()


def export(name: str, base: Path, arguments: argparse.Namespace) -> None:
    """Writes `<base>/<name>/1`."""
    import keras

    import keras_drill
    from keras_drill.data import Vocabulary, WhitespaceTokenizer
    from keras_drill.export import export_saved_model

    size, width = arguments.vocabulary, arguments.width
    keras.utils.set_random_seed(1)
    options = {}
    if name == "kerbs":
        options["embedding"] = keras_drill.SenseEmbedding(size, width, num_senses=3 * size)
    backbone = keras_drill.models.AWDLSTM(
        size, embedding_dim=width, units=arguments.units, num_layers=2, **options
    )
    if name == "kerbs":
        head = keras_drill.KernelizedBayesianSoftmax(size, backbone.embedding)
    elif name in ("drill", "unfolded"):
        encoder = keras_drill.ResidualLabelEncoder(depth=arguments.depth, activation="relu")
        head = keras_drill.OutputLayer(size, embedding=backbone.embedding, label_encoder=encoder)
    else:
        head = keras_drill.OutputLayer(size, embedding=backbone.embedding)
    model = keras_drill.LanguageModel(backbone, head)
    model(np.zeros((1, 1), "int32"))
    if name == "unfolded":
        head.folded = lambda: head
    words = ["<unk>", "<eos>", *(f"w{number}" for number in range(1, size - 1))]
    export_saved_model(
        model,
        base / name,
        WhitespaceTokenizer(),
        Vocabulary(words),
        max_new_tokens=arguments.words,
        forbidden_tokens=[0, 1],
        weights=name if name in ("bfloat16", "int8") else "float32",
    )


def print_latencies(base: Path, arguments: argparse.Namespace) -> None:
    import tensorflow as tf

    # All are kept: signatures do not hold the model that they belong to.
    loaded = {name: tf.saved_model.load(str(base / key / "1")) for name, key in MODELS.items()}

    def caller(name: str, signature: str, text: str):
        return lambda: loaded[name].signatures[signature](tf.constant([text]))["lengths"].numpy()

    print("\n| one at a time | continue, ms | words/s | ×tied | score, ms | ×tied |")
    print("|---|---|---|---|---|---|")
    continued = alternate(
        {name: caller(name, "continue", PROMPT) for name in MODELS},
        arguments.rounds,
        time.process_time,
    )
    scored = alternate(
        {name: caller(name, "score", TEXT) for name in MODELS}, arguments.rounds, time.process_time
    )
    for name in MODELS:
        seconds, of_score = (statistics.median(times[name]) for times in (continued, scored))
        print(
            f"| {name} | {1e3 * seconds:.1f} | {arguments.words / seconds:.0f} | "
            f"{median_ratio(continued[name], continued['tied']):.2f} | {1e3 * of_score:.1f} | "
            f"{median_ratio(scored[name], scored['tied']):.2f} |"
        )


def print_throughput(base: Path, arguments: argparse.Namespace) -> None:
    served = base / "served"
    served.mkdir()
    for key in SERVED.values():
        (served / key).symlink_to(base / key)
    print(
        f"\n| {arguments.requests} requests, {arguments.concurrency} at a time | batches | "
        "p50, ms | p95, ms | requests/s | words/s |"
    )
    print("|---|---|---|---|---|---|")
    for batches, options in {"on": [], "off": ["--no-batching"]}.items():
        command = [sys.executable, "-m", "keras_drill_command", "serve", str(served)]
        with subprocess.Popen(
            [*command, "--port", "0", "--no-grpc", "--timeout", "600", *options],
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                url = address(process)
                for signature, text in (("continue", PROMPT), ("score", TEXT)):
                    for name, key in SERVED.items():
                        row = load(url, key, signature, text, base, arguments)
                        print(f"| {name}, {signature} | {batches} | {row} |", flush=True)
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate()


def address(process: subprocess.Popen) -> str:
    """Where a server listens that has loaded its models."""
    url, loaded = "", 0
    for line in process.stderr:
        found = re.search(r"page +(http://[\d.:]+)/", line)
        url = found[1] if found else url
        loaded += "is loaded" in line
        if loaded == len(SERVED):
            return url
    raise RuntimeError("the server ended before it had loaded the models")


def load(
    url: str, model: str, signature: str, text: str, folder: Path, arguments: argparse.Namespace
) -> str:
    body = json.dumps({"signature_name": signature, "instances": [text]})
    path = f"/v1/models/{model}:predict"
    urllib.request.urlopen(urllib.request.Request(url + path, body.encode()), timeout=600).read()
    request = json.dumps({"path": path, "body": body}) + "\n"
    (folder / "requests").write_text(request * arguments.requests)
    in_fresh_process(
        "benchmarks.serving_load",
        *(url, str(folder / "requests"), str(folder / "answers")),
        *("--concurrency", str(arguments.concurrency)),
    )
    answers = [json.loads(line) for line in (folder / "answers").read_text().splitlines()]
    refused = [answer for answer in answers if answer["status"] != 200]
    if refused:
        raise RuntimeError(f"{len(refused)} requests are refused, first: {refused[0]}")
    p50, p95 = np.percentile([1e3 * (one["end"] - one["start"]) for one in answers], [50, 95])
    rate = len(answers) / max(one["end"] for one in answers)
    words = sum(one["answer"]["predictions"][0]["lengths"] for one in answers) / len(answers)
    return f"{p50:.0f} | {p95:.0f} | {rate:.1f} | {rate * words:.0f}"


def print_cold_starts(base: Path, arguments: argparse.Namespace) -> None:
    print("\n| from the folder | load, s | warm-up, s | first continue, ms | second, ms |")
    print("|---|---|---|---|---|")
    for key in STARTED_COLD:
        for warm in (True, False):
            folder = base / key / "1"
            if not warm:
                folder = Path(shutil.copytree(folder, base / f"cold-{key}"))
                (folder / "assets.extra" / "tf_serving_warmup_requests").unlink()
            runs = [
                json.loads(in_fresh_process("benchmarks.serving", "--cold", str(folder)))
                for _ in range(min(3, arguments.rounds))
            ]
            load, warm_up, first, second = (
                statistics.median(run) for run in zip(*runs, strict=True)
            )
            name = f"{key}, {'with' if warm else 'without'} warm-up requests"
            print(
                f"| {name} | {load:.2f} | {warm_up:.2f} | {1e3 * first:.0f} | {1e3 * second:.0f} |"
            )


def cold_start(folder: Path) -> list[float]:
    """Seconds to load a model, to warm it up, and of its first two answers, in a new process."""
    import tensorflow_text  # noqa: F401  what a server has imported before there is a model

    from keras_drill.workbench.serving.servable import Servable

    inputs = {"prompts": np.array([PROMPT.encode()], object)}
    servable = None

    def first_load() -> None:
        nonlocal servable
        servable = Servable("model", 1, folder)

    steps = [
        first_load,
        lambda: servable.warm_up(),
        lambda: servable.run("continue", inputs),
        lambda: servable.run("continue", inputs),
    ]
    seconds = []
    for step in steps:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


TABLES = {
    "latency": print_latencies,
    "throughput": print_throughput,
    "cold-start": print_cold_starts,
}


if __name__ == "__main__":
    main()
