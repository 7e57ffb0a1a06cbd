"""Trains, evaluates and reports a run, for `keras-drill train`."""

import contextlib
import datetime
import json
import sys

import keras
import tensorflow as tf

from keras_drill.data.atomic import replace_file
from keras_drill.distribute import strategy
from keras_drill.workbench.report import RunSummary, describe_environment, write_report
from keras_drill.workbench.report.evaluated_text import describe_texts
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import Diverged
from keras_drill.workbench.tasks.explain_text import describe_origins
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.find_divergence import find_divergence
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.training import Training
from keras_drill.workbench.training.workers import Workers


def train_run(config: RunConfig, folder: RunFolder) -> RunSummary | None:
    """Trains or resumes a run, evaluates its best model, and writes its report.

    With several workers, each worker calls this function, and needs access to the same folder and
    data. The chief locks the folder, writes its files and evaluates the model. If one worker fails,
    all workers fail.

    Args:
        config: the options.
        folder: the folder of the run.

    Returns:
        The report's summary of the run; `None` on workers other than the chief.
    """
    workers = Workers(strategy(config.training.strategy))
    with contextlib.ExitStack() as stack, workers.detect_lost_workers():

        def begin() -> None:
            stack.enter_context(folder.lock())
            folder.check(config)

        workers.by_chief(begin)
        task = make_task(config)
        run_vocabulary = workers.together(lambda: task.make_vocabulary(folder.path))
        texts = workers.together(lambda: task.read_texts(run_vocabulary))
        workers.check_same("a different vocabulary", run_vocabulary.fingerprint)
        workers.check_same("different texts", task.fingerprint(texts))
        training = Training(task, folder, run_vocabulary, texts, workers)
        if not training.finished or config.training.average_checkpoints:
            training.prepare()
        described = task.describe(run_vocabulary, texts)

        def write() -> None:
            folder.write_config(config)
            run_vocabulary.save(folder.path)
            print(f"{folder.path}: {described}", flush=True)
            if not training.finished:
                print(describe_origins(task.read_columns(config.data.path)), flush=True)
                print(task.explain_text(run_vocabulary, texts), flush=True)
            _report_progress(training)

        workers.by_chief(write)
        if not training.finished:
            try:
                training.run()
            except Diverged as error:
                if workers.num_replicas > 1:  # the search works with one replica only
                    raise
                again = Training(task, folder, run_vocabulary, texts, workers)
                print(
                    "searching for the layer in which the divergence began",
                    file=sys.stderr,
                    flush=True,
                )
                raise Diverged(f"{error}. {find_divergence(again)}") from error
        if not workers.is_chief:
            return workers.together(lambda: None)
        return workers.together(lambda: _evaluate(training, described))


def _report_progress(training: Training) -> None:
    """Prints where the training resumes, and warns if the learning rate is unsuitable."""
    state = training.state
    if training.finished:
        print(f"already trained: all {state.epoch} epochs are done")
    elif state.step:
        print(f"resuming at epoch {state.epoch + 1}, batch {state.batch + 1}")
        for change in training.new_changes:
            print(f"{change['option']} changes from {change['before']!r} to {change['now']!r}")
    elif training.config.optimizer.is_adam_with_rate_of_sgd:
        print(
            f"optimizer.learning_rate = {training.config.optimizer.learning_rate:g} is too large "
            "for Adam, whose step size does not depend on the size of the gradient; try 0.005",
            file=sys.stderr,
        )


def _evaluate(training: Training, described: str) -> RunSummary:
    """Evaluates the best model of a finished training, and writes its results and report."""
    folder, task = training.folder, training.task
    training.average()
    run = LoadedRun.load(folder)
    texts = run.evaluation_texts()
    evaluation = task.evaluate(
        run.model, run.vocabulary, {text.name: text.encoded for text in texts}
    )
    summary = run.summarize(evaluation, texts)
    write_results(folder, summary, described)
    write_report(
        folder.report_file,
        [summary],
        sections=task.sections([run.vocabulary], {folder.name: evaluation}, {}),
        title=run.config.description or folder.name,
        environment=describe_environment(seed=run.config.training.seed),
    )
    print(
        f"best epoch {summary.best_epoch}: validation perplexity {summary.valid_perplexity:.2f}"
        + (f", test {summary.test_perplexity:.2f}" if summary.test_perplexity else "")
        + "".join(f", {name} {score:.2f}" for name, score in summary.scores.items())
        + "".join(f"\n{line}" for line in summary.signature_lines)
        + f"\n{describe_texts({summary.name: summary.texts})}"
        + f"\nreport: {folder.report_file}"
    )
    return summary


def write_results(folder: RunFolder, summary: RunSummary, data: str) -> None:
    """Writes the best model's metrics to `results.json`, with the date and the evaluated data.

    Args:
        folder: The folder of the run.
        summary: The summary with the metrics.
        data: Description of the run's data.
    """
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
        results["signatures"] = dict(summary.signatures)
    results["texts"] = {text.name: text.to_json() for text in summary.texts}
    results["data"] = data
    results["date"] = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}"
    replace_file(folder.results_file, json.dumps(results, indent=2) + "\n")


def prepare_process(config: RunConfig) -> None:
    """Sets Keras' dtype policy and, with `training.deterministic`, deterministic operations.

    Use this function only in programs that train a single run, since both settings are global.
    """
    keras.config.set_dtype_policy(config.training.precision)
    if config.training.deterministic:
        tf.config.experimental.enable_op_determinism()
