"""Everything that `keras-drill train` does."""

import datetime
import json

import keras
import tensorflow as tf

from keras_drill.data.atomic import replace_file
from keras_drill.report import RunSummary, describe_environment, write_report
from keras_drill.tasks.config import RunConfig
from keras_drill.tasks.make_task import make_task
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.run_folder import RunFolder
from keras_drill.training.training import Training


def train_run(config: RunConfig, folder: RunFolder) -> RunSummary:
    """Trains a run, or resumes it, judges its best model, and writes its report.

    Args:
        config: the options.
        folder: where everything is kept.

    Returns:
        What the report says about the run.
    """
    with folder.lock():
        folder.check(config)
        task = make_task(config)
        words = task.make_words(folder.path)
        texts = task.read_texts(words)
        training = Training(task, folder, words, texts)
        if not training.finished or config.training.average_checkpoints:
            training.prepare()
        folder.write_config(config)
        words.save(folder.path)
        described = task.describe(words, texts)
        print(f"{folder.path}: {described}", flush=True)
        if training.finished:
            print(f"already trained: {training.state.epoch} epochs, nothing left to do")
        else:
            if training.state.step:
                print(
                    f"resuming at epoch {training.state.epoch + 1}, "
                    f"batch {training.state.batch + 1}"
                )
            training.run()
        training.average()
        run = LoadedRun.load(folder)
        texts.pop("train")
        judgement = task.judge(run.model, run.words, texts)
        summary = run.summarize(judgement)
        write_results(folder, summary, described)
        write_report(
            folder.report_file,
            [summary],
            sections=task.sections([run.words], {folder.name: judgement}),
            title=config.description or folder.name,
            environment=describe_environment(seed=config.training.seed),
        )
    print(
        f"best epoch {summary.best_epoch}: validation perplexity {summary.valid_perplexity:.2f}"
        + (f", test {summary.test_perplexity:.2f}" if summary.test_perplexity else "")
        + "".join(f", {name} {score:.2f}" for name, score in summary.scores.items())
        + f"\nreport: {folder.report_file}"
    )
    return summary


def write_results(folder: RunFolder, summary: RunSummary, data: str) -> None:
    """Writes the figures of the best model to `results.json`, of which data they are, and when."""
    figures = (
        "total_parameters",
        "output_parameters",
        "best_epoch",
        "valid_perplexity",
        "test_perplexity",
        "seconds_per_epoch",
    )
    results = {figure: getattr(summary, figure) for figure in figures}
    results["is_averaged"] = folder.averaged_model_file.exists()
    if summary.scores:
        results["scores"] = dict(summary.scores)
    results["data"] = data
    results["date"] = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}"
    replace_file(folder.results_file, json.dumps(results, indent=2) + "\n")


def prepare_process(config: RunConfig) -> None:
    """Sets the precision and, if the options say so, deterministic operations.

    For programs that train one run; a library call must not change what other code relies on.
    """
    keras.config.set_dtype_policy(config.training.precision)
    if config.training.deterministic:
        tf.config.experimental.enable_op_determinism()
