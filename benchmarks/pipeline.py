"""Measures the speed and memory with which a pipeline converts text to examples and ids.

    python -m benchmarks.pipeline --data wikitext-2/            # MB of text a second, by component
    python -m benchmarks.pipeline --data wikitext-2/ --tfx .venv-tfx/bin/python    # TFX's beside
    python -m benchmarks.pipeline --megabytes 10 100 1000       # peak memory for generated text

Each measurement runs in a separate process, with one computing thread unless `--threads` is set.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.timing import describe, in_fresh_process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a text file, or a folder with train, valid and test text")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[], help="text to generate")
    parser.add_argument("--vocabulary", type=int, default=50_000, help="words of that text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokenizer", default="whitespace", choices=("whitespace", "words"))
    parser.add_argument("--tfx", metavar="PYTHON", help="of the environment of `make test-tfx`")
    parser.add_argument("--folder", help="where to write; default: a temporary folder")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        _measure(Path(args.one), args.tokenizer, args.threads)
        return
    print(describe())
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        more = ("--tokenizer", args.tokenizer, "--threads", str(args.threads))
        if args.data:
            print(f"{args.data}, best of {args.rounds}, megabytes of text a second:")
            runs = [_run(args.data, folder, more) for _ in range(args.rounds)]
            for name in ("ExampleGen", "Transform", "both"):
                wall, processor = (max(run[name][kind] for run in runs) for kind in (0, 1))
                print(f"  {name:<12} {wall:6.1f}  (by processor time {processor:.1f})")
        if args.data and args.tfx:
            said = in_fresh_process(
                "benchmarks.tfx_pipeline",
                *("--data", args.data, "--tokenizer", args.tokenizer),
                python=args.tfx,
            )
            print(f"{args.data}, TFX's components on Beam's direct runner, once:")
            seconds = {name: float(number) for name, number in map(str.split, said.splitlines())}
            seconds["both"] = seconds["FileBasedExampleGen"] + seconds["Transform"]
            for name, taken in seconds.items():
                print(f"  {name:<20} {_megabytes(Path(args.data)) / taken:6.2f}  ({taken:.1f} s)")
        for megabytes in args.megabytes:
            path = Path(folder) / "text.txt"
            _generate(path, megabytes, args.vocabulary)
            figures = _run(path, folder, more)
            print(
                f"{megabytes:>6} MB generated: {figures['both'][0]:6.1f} MB/s "
                f"({figures['both'][1]:.1f} by processor time), "
                f"peak memory {figures['peak'][0]:.0f} MB over the "
                f"{figures['start'][0]:.0f} MB after importing"
            )
            path.unlink()


def _run(data, folder: str, more: tuple[str, ...]) -> dict[str, list[float]]:
    """What a process of its own printed: names and numbers."""
    environment = dict(os.environ)
    os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TMPDIR": folder})
    try:
        said = in_fresh_process("benchmarks.pipeline", "--one", str(data), *more)
    finally:
        os.environ.clear()
        os.environ.update(environment)
    lines = [line.split() for line in said.splitlines()]
    return {name: [float(number) for number in numbers] for name, *numbers in lines}


def _measure(data: Path, tokenizer: str, threads: int) -> None:
    """Prints, for each component, megabytes a second by the clock and by processor time."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
    from keras_drill.workbench.tasks.make_task import make_task
    from pipelines.components.example_gen import ExampleGen
    from pipelines.components.transform import Transform

    task = make_task(LanguageModelConfig().replace({"data.tokenizer": tokenizer}))
    tf.strings.split(tf.constant(["warm up"]))
    start = _memory("VmRSS")
    print("start", start)
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        examples, transformed = Path(folder) / "examples", Path(folder) / "transformed"
        for component, output in ((ExampleGen(task, str(data)), examples),
                                  (Transform(task), transformed)):  # fmt: skip
            output.mkdir()
            clock, processor = time.perf_counter(), time.process_time()
            component.run({"examples": examples}, output, lambda *told: None)
            seconds[component.name] = (
                time.perf_counter() - clock,
                time.process_time() - processor,
            )
    seconds["both"] = tuple(map(sum, zip(*seconds.values(), strict=True)))
    megabytes = _megabytes(data)
    for name, (clock, processor) in seconds.items():
        print(name, megabytes / clock, megabytes / processor)
    print("peak", _memory("VmHWM") - start)


def _megabytes(data: Path) -> float:
    """Of a file, or of the files in a folder."""
    files = [data] if data.is_file() else [path for path in data.iterdir() if path.is_file()]
    return sum(path.stat().st_size for path in files) / 1e6


def _memory(field: str) -> float:
    """Megabytes of this process (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def _generate(path: Path, megabytes: int, vocabulary: int) -> None:
    """Writes lines of 5 to 40 words, the frequency of a word being inverse to its rank."""
    import numpy as np

    random = np.random.default_rng(5)
    words = np.array([f"word{number}" for number in range(vocabulary)])
    shares = 1 / np.arange(1, vocabulary + 1)
    ends = np.cumsum(shares / shares.sum())
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        while written < megabytes * 1e6:
            lengths = random.integers(5, 41, 4096)
            ranks = np.searchsorted(ends, random.random(lengths.sum()))
            drawn = words[np.minimum(ranks, vocabulary - 1)]
            lines = np.split(drawn, np.cumsum(lengths)[:-1])
            written += file.write("".join(" ".join(line) + "\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
