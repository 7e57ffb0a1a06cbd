"""Loads the trained model of a run, with its options and vocabulary."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_drill.callbacks import NonMonotonicAveraging
from keras_drill.layers.carried_state import zero_carried_state
from keras_drill.models import make_stateless
from keras_drill.workbench.analysis import count_dedicated_parameters
from keras_drill.workbench.report import RunSummary
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.evaluation_text import EvaluationText
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.tasks.task import (
    AnsweringTask,
    ContinuingTask,
    Evaluation,
    RunVocabulary,
    Task,
)
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.run_folder import RunFolder, read_history
from keras_drill.workbench.training.snapshot import AVERAGING, callback_state, restore_weights


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """A trained model with its options, its task and its vocabulary.

    Args:
        folder: the folder of the run.
        config: the options of the run.
        task: the task that the model was trained for.
        model: the best model of the run, or the model of a checkpoint.
        vocabulary: the vocabulary of the run.
    """

    folder: RunFolder
    config: RunConfig
    task: Task
    model: keras.Model
    vocabulary: Any  # the type depends on the task

    @classmethod
    def load(
        cls,
        folder: RunFolder,
        checkpoint: int | str | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> "LoadedRun":
        """Loads a model of a run and its vocabulary, and checks that they match.

        Args:
            folder: the folder of the run.
            checkpoint: the step whose checkpoint to load, or "last". By default the best model is
                loaded, or the mean of the last checkpoints if the run has such a model.
            changes: options that replace those of the run, by their full names, for example
                options of the search.

        Raises:
            RunError: The run has no such model, or model and vocabulary do not match.
        """
        config = folder.config()
        folder.check_unedited(config)
        config = config.replace(changes or {})
        task = make_task(config)
        run_vocabulary = task.load_vocabulary(folder.path)
        if checkpoint is not None:
            model = _model_of_checkpoint(folder, task, run_vocabulary, checkpoint)
        else:
            model = _best_model(folder)
        if model.head.vocabulary_size != len(run_vocabulary.tokens):
            raise RunError(
                f"{folder.path / config.word_files[0]} must be the vocabulary of "
                f"{folder.model_file.name}, which has {model.head.vocabulary_size} words. "
                "Restore the original file. "
                f"Received: a vocabulary of {len(run_vocabulary.tokens)} words"
            )
        return cls(folder, config, task, model, run_vocabulary)

    @functools.cached_property
    def stateless_model(self) -> keras.Model:
        """The model without recurrent state between batches, for batches of any size.

        `model` itself accepts only the batch size with which it was trained.
        """
        return make_stateless(self.model)

    @property
    def continuing_task(self) -> ContinuingTask:
        """The task of a model that continues texts. Other models raise `RunError`."""
        if not isinstance(self.task, ContinuingTask):
            raise RunError(
                f"the model of {self.folder.path} does not continue texts: use a run of the task "
                f"'language-model'. Received: a run of the task {self.config.task!r}"
            )
        return self.task

    @property
    def answering_task(self) -> AnsweringTask:
        """The task of a model that generates outputs for sources. Other models raise `RunError`."""
        if not isinstance(self.task, AnsweringTask):
            raise RunError(
                f"the model of {self.folder.path} does not generate outputs for sources: use a run "
                "of the task 'translation', 'dialog' or 'autoencoder'. "
                f"Received: a run of the task {self.config.task!r}"
            )
        return self.task

    def evaluation_texts(self, data: str | Sequence[str] | None = None) -> list[EvaluationText]:
        """Returns the texts for the evaluation of the model, see `Task.evaluation_texts`."""
        return self.task.evaluation_texts(self.vocabulary, data)

    def summarize(self, evaluation: Evaluation, texts: Sequence[EvaluationText] = ()) -> RunSummary:
        """Returns the summary of the run for a report.

        Args:
            evaluation: Results of the model's evaluation.
            texts: The evaluated texts.
        """
        perplexities = dict(evaluation.perplexities)
        history = read_history(self.folder.history_file)
        losses = [self.task.validation_loss(values) for values in _by_epoch(history)]
        return RunSummary(
            name=self.folder.name,
            output_layer=self.config.output_layer,
            history=history,
            total_parameters=_count(self.model.trainable_variables),
            output_parameters=count_dedicated_parameters(self.model.head, self.model.backbone),
            valid_perplexity=perplexities.pop("valid", None),
            test_perplexity=perplexities.pop("test", None),
            other_perplexities=perplexities,
            scores=evaluation.scores,
            signatures=evaluation.signatures,
            notes=evaluation.notes,
            texts=tuple(text.described for text in texts),
            best_epoch=int(np.nanargmin(losses)) + 1,
            seconds_per_epoch=float(np.mean(history["seconds"])),
            max_epochs=self.config.training.epochs,
            config=self.config.to_mapping(),
            changes=self.folder.changes(),
        )


def load_runs(folders: Sequence[RunFolder], checkpoint: int | str | None = None) -> list[LoadedRun]:
    """Loads runs for a comparison.

    Args:
        folders: The runs' folders.
        checkpoint: The checkpoint to load from each run, see `LoadedRun.load`.

    Raises:
        RunError: Two folders have the same name, or the runs have different tasks.
    """
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        raise RunError(f"the folders of the runs must have different names. Received: {names}")
    runs = [LoadedRun.load(folder, checkpoint) for folder in folders]
    tasks = {run.config.task: run.folder.path for run in runs}
    if len(tasks) > 1:
        what = " and ".join(f"{task} ({path})" for task, path in tasks.items())
        raise RunError(f"the runs must have the same task. Received: {what}")
    return runs


def _by_epoch(history: dict[str, list[float]]) -> list[dict[str, float]]:
    return [
        dict(zip(history, values, strict=True)) for values in zip(*history.values(), strict=True)
    ]


def _best_model(folder: RunFolder) -> keras.Model:
    file = folder.model_file
    if folder.averaged_model_file.exists():
        file = folder.averaged_model_file
    if not file.exists():
        raise RunError(
            f"{folder.path} has no model yet; `keras-drill train` writes a model after the first "
            "epoch"
        )
    try:
        return keras.saving.load_model(file, compile=False, safe_mode=True)
    # Zip, HDF5, JSON and Keras raise errors of different types for damaged files.
    except Exception as error:
        raise RunError(
            f"{file} cannot be loaded: {(str(error).splitlines() or [type(error).__name__])[0]} "
            "(resume the training to write the file again, or use --checkpoint)"
        ) from error


def _model_of_checkpoint(
    folder: RunFolder, task: Task, run_vocabulary: RunVocabulary, checkpoint: int | str
) -> keras.Model:
    store = CheckpointStore(folder.checkpoints)
    if checkpoint == "last":
        if not store.steps():
            raise RunError(
                f"{folder.path} has no checkpoint yet; `keras-drill train` writes checkpoints"
            )
        checkpoint = store.steps()[-1]
    arrays, state = store.load(int(checkpoint))
    if state["fingerprints"]["vocabulary"] != run_vocabulary.fingerprint:
        raise RunError(
            f"{folder.path / task.config.word_files[0]} is not the vocabulary that checkpoint "
            f"{checkpoint} was made with; restore the original file"
        )
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(task.config.training.precision)
    try:
        model = task.build_model(run_vocabulary)
    finally:
        keras.config.set_dtype_policy(before)
    restore_weights(model, arrays)
    averaging_state = callback_state(AVERAGING, arrays)
    if averaging_state:
        averaging = NonMonotonicAveraging()
        averaging.set_model(model)
        averaging.set_state(averaging_state)
        averaging.on_test_begin()  # swaps in the average, also for a checkpoint within an epoch
    zero_carried_state(model)
    return model


def _count(variables: Iterable[keras.Variable]) -> int:
    return sum(math.prod(variable.shape) for variable in variables)
