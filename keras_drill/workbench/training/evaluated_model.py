"""The model of a training on one device, as it is evaluated and saved."""

from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from keras_drill.data.atomic import replaced_file
from keras_drill.workbench.tasks.task import RunVocabulary, Task
from keras_drill.workbench.training.snapshot import restore_snapshot, take_snapshot
from keras_drill.workbench.training.workers import Workers


class EvaluatedModel:
    """What answers, is evaluated and is saved: the trained model itself, where it has one replica.

    Of several, each has a share of a batch's rows in its carried state, so files of them would
    depend on their number. There it is a model of its own, that the chief alone has, with the
    variables that one device would have.

    Args:
        model: What is trained, compiled.
        task: Its task.
        words: Its words.
        workers: What it is trained by.
        compile_model: Compiles a model as `model` is.

    """

    def __init__(
        self,
        model: keras.Model,
        task: Task,
        run_vocabulary: RunVocabulary,
        workers: Workers,
        compile_model: Callable[[keras.Model], None],
    ):
        self._trained = model
        self._workers = workers
        self._model: keras.Model | None = model
        if workers.num_replicas > 1:
            self._model = None
        if workers.num_replicas > 1 and workers.is_chief:
            self._model = task.build_model(run_vocabulary)
            compile_model(self._model)
            self._model.optimizer.build(self._model.trainable_variables)
            self._model.test_on_batch(*task.example_batch())  # makes the variables of metrics

    @property
    def model(self) -> keras.Model:
        """The evaluated one, on the chief."""
        if self._model is None:
            raise RuntimeError("only the chief evaluates")
        return self._model

    def update(self) -> None:
        """Takes over the trained model's variables. To be called on all workers at once."""
        if self._workers.num_replicas == 1:
            return
        arrays = take_snapshot(self._trained, self._workers)
        if self._workers.is_chief:
            restore_snapshot(self.model, arrays, Workers(tf.distribute.get_strategy()))

    def save(self, path: Path) -> None:
        """Writes the model beside, and renames the file."""
        with replaced_file(path) as beside:
            self.model.save(beside)
