"""Measures the peak memory for texts of several sizes, with ids in memory and on the disk.

    python -m benchmarks.large_texts [--read 1000 10000] [--train 50 150] [--folder /tmp/large]

`--read`: megabytes of ids that are written to a `StreamedText` and read in batches of 64 rows.
`--train`: megabytes of random text for one epoch of `keras-drill train`, which counts the words,
encodes the text, and trains a small GRU, with the ids in memory and with `data.on_disk`.

Each measurement runs in a separate process. Memory is the peak resident memory.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import describe

OPTIONS = {
    "data.tokenizer": "whitespace",
    "data.batch_size": 256,
    "data.sequence_length": 512,
    "data.variable_length": "false",
    "backbone.embedding_dim": 8,
    "backbone.units": 8,
    "optimizer.kind": "adam",
    "optimizer.learning_rate": 0.01,
    "training.epochs": 1,
    "training.tensorboard": "false",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--read", type=int, nargs="*", default=[1000, 10_000], help="MB of ids")
    parser.add_argument("--train", type=int, nargs="*", default=[50, 150], help="MB of text")
    parser.add_argument("--words", type=int, default=500, help="different ones of a text")
    parser.add_argument("--folder", type=Path, help="where the texts are written, and removed")
    arguments = parser.parse_args()
    print(describe())
    print(f"{'':>17} {'ids':>8} {'peak memory':>14} {'seconds':>9}")
    for megabytes in arguments.read:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            told = measure([sys.executable, "-c", READ, f"{folder}/text", str(megabytes)])
            print(line("read", megabytes, "on disk", *told), flush=True)
    for megabytes in arguments.train:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            write_text(Path(folder) / "text", megabytes, arguments.words)
            for way in ("memory", "on disk"):
                told = measure(training(Path(folder), way))
                print(line("train", megabytes, way, *told), flush=True)
                shutil.rmtree(Path(folder) / "run")


READ = """
import sys
import numpy as np
from keras_drill.data import ContiguousBatches, StreamedText

block = np.random.default_rng(1).integers(0, 30_000, 250_000).astype("int32")
text = StreamedText.write(sys.argv[1], (block for _ in range(int(sys.argv[2]))))
batches = ContiguousBatches(text, 64, 2048)
total = sum(int(targets.numpy().sum()) for _, targets in batches.dataset())
assert abs(total - int(sys.argv[2]) * int(block.sum())) < 64 * 30_000  # what no row has
"""


def line(what: str, megabytes: int, way: str, peak: int, seconds: float) -> str:
    return f"{what:5} {megabytes:8} MB {way:>8} {peak / 1e6:11.1f} MB {seconds:9.1f}"


def write_text(folder: Path, megabytes: int, words: int) -> None:
    """Lines of twenty words, few of them frequent; validation and test text of 200 lines."""
    folder.mkdir()
    random = np.random.default_rng(1)
    names = np.array([f"w{number}" for number in range(words)])
    block = [
        " ".join(names[np.minimum(random.zipf(1.3, 20), words) - 1]) + "\n" for _ in range(20_000)
    ]
    for split in ("valid", "test"):
        (folder / f"{split}.txt").write_text("".join(block[:200]))
    written = 0
    with open(folder / "train.txt", "w") as file:
        while written < megabytes * 10**6:
            random.shuffle(block)
            written += file.write("".join(block))


def training(folder: Path, way: str) -> list[str]:
    """The command."""
    options = dict(OPTIONS)
    if way == "on disk":
        options["data.on_disk"] = folder / "ids"
    words = [f"--{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "keras_drill_command", "train", "small-gru-softmax", *words]
    return [*command, "--data", str(folder / "text"), "--run", str(folder / "run")]


def measure(command: list[str]) -> tuple[int, float]:
    """Most memory of a process, in bytes, and its seconds."""
    start = time.perf_counter()
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the process has ended with status {process.returncode}")
    return usage.ru_maxrss * 1024, time.perf_counter() - start


if __name__ == "__main__":
    main()
