"""`keras-drill demo`."""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from keras_drill.workbench.cli.arguments import check_data, output_folder
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.load_config import load_config

_PROMPTS = ("the", "if the", "a class", "the function")
_MAX_EPOCHS = 20
_MAX_BYTES = 4_000_000  # bytes of text read in all epochs; the default text needs fewer
_LEVEL = 1.05  # with three seeds the default text gives tied 74.6 to 77.0, and DRILL 75.1 to 76.1


def add_parser(commands) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        "demo",
        help="train and compare two small models, and export the better one",
        description=(
            "Trains a small AWD-LSTM with a tied softmax and one with a DRILL output layer,\n"
            "compares the models and exports the better one. The exported model then continues\n"
            "texts in a separate process, which uses TensorFlow without this package.\n"
            "The demo takes a few minutes."
        ),
        epilog="Examples:\n  keras-drill demo\n  keras-drill demo --data book.txt --run runs/book",
    )
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="a text file, or a folder with train, valid and test text (default: the text of the "
        "Python language reference, which is part of Python)",
    )
    parser.add_argument(
        "--run", metavar="RUN", dest="folder", help="folder of the runs (default: runs/demo)"
    )
    parser.add_argument(
        "--directory",
        default="saved_models",
        help="folder of exported models (default: %(default)s)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    check_data(args.data)
    output_folder("--directory", args.directory)
    if args.folder is not None:
        output_folder("--run", args.folder)

    from keras_drill.workbench.cli.streams import import_tensorflow

    import_tensorflow()
    from keras_drill.decoding import TopPSampler
    from keras_drill.workbench.training.compare_runs import compare_runs, comparison_table
    from keras_drill.workbench.training.loaded_run import LoadedRun
    from keras_drill.workbench.training.run_folder import RunFolder
    from keras_drill.workbench.training.train_run import prepare_process, train_run

    folder, data = _places(args)
    folders = []
    for number, head in enumerate(("tied", "drill"), start=1):
        config = _config(f"small-{head}", data)
        print(f"\n[{number}/4] {config.description}", flush=True)
        prepare_process(config)
        folders.append(RunFolder(folder / head))
        train_run(config, folders[-1])

    print("\n[3/4] Comparing the two models, and exporting the better one", flush=True)
    report = folder / "report.html"
    summaries = compare_runs(folders, report, title="A tied softmax and DRILL")
    perplexities = [summary.test_perplexity or summary.valid_perplexity for summary in summaries]
    measured = [perplexity for perplexity in perplexities if perplexity is not None]
    best = folders[perplexities.index(min(measured))]
    loaded = LoadedRun.load(best)
    exported = loaded.continuing_task.export(
        loaded.model,
        loaded.vocabulary,
        Path(args.directory) / folder.name,
        version=None,
        sampler=TopPSampler(0.9, temperature=0.8),
        seed=0,
        max_tokens=50,
    )

    print(f"\n[4/4] {exported} continues texts in a separate process", flush=True)
    _continue_texts(exported)

    print(f"\n{comparison_table(summaries)}\n")
    if max(measured) < _LEVEL * min(measured):
        print("The perplexities are about equal: with another seed, either model may be better.\n")
    print(f"model   {exported}\nreport  {report}\n\nNext:")
    run, text = shlex.quote(str(best.path)), shlex.quote(str(data))
    print(f'  {_command()} generate {run} "{_PROMPTS[0]}" --temperature 0.8')
    print(f'  {_command()} score {run} "{_PROMPTS[1]} value is not found"')
    own = "--run runs/mine --head.learning_rate_multiplier 1"
    print(f"  {_command()} train small-drill --data {text} {own}")
    return 0


def _places(args: argparse.Namespace) -> tuple[Path, Path]:
    """Returns the folder of the demo and the path of its text."""
    if args.data is not None:
        data = Path(args.data)
        return Path(args.folder or f"runs/demo-{data.resolve().stem}"), data
    from keras_drill.data import pydoc_topics

    folder = Path(args.folder or "runs/demo")
    # Versions of Python have different texts, and a resumed demo must use the same text as before.
    if not (folder / "text" / "train.txt").exists():
        pydoc_topics(folder / "text")
    return folder, folder / "text"


def _config(recipe: str, data: Path) -> RunConfig:
    from keras_drill.data import Corpus

    num_bytes = sum(len(line) + 1 for line in Corpus(data).train)
    epochs = max(1, min(_MAX_EPOCHS, _MAX_BYTES // num_bytes))
    return load_config(recipe).replace(
        {
            "data.path": os.path.abspath(data),
            "data.max_vocabulary": 20_000,
            "training.epochs": epochs,
            "samples.prompts": _PROMPTS,
        }
    )


def _continue_texts(exported: Path) -> None:
    """Runs `continue_texts.py` in a separate process that cannot import this package."""
    script = Path(__file__).with_name("continue_texts.py")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(
        [sys.executable, "-I", script, exported, *_PROMPTS],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    if result.returncode:
        raise RuntimeError(f"the exported model cannot continue texts:\n{result.stderr}")


def _command() -> str:
    """Returns the path of the program `keras-drill`, quoted for a shell."""
    return shlex.quote(os.path.relpath(Path(sys.executable).with_name("keras-drill")))
