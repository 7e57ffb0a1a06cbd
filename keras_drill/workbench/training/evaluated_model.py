"""The copy of the trained model that is evaluated and saved, for a single device."""

from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from keras_drill.data.atomic import replaced_file
from keras_drill.workbench.tasks.task import RunVocabulary, Task
from keras_drill.workbench.training.snapshot import restore_snapshot, take_snapshot
from keras_drill.workbench.training.workers import Workers


class EvaluatedModel:
    """Holds the model that is evaluated and saved during a training.

    With one replica this is the trained model itself. With several replicas, the recurrent state of
    each replica has only its own rows of the batch. A saved file would depend on the number of
    replicas. Therefore the chief then has a second model, whose variables are those of a training
    on one device.

    Args:
        model: The trained model, compiled.
        task: The task of the run.
        run_vocabulary: The vocabulary of the run.
        workers: The workers that train the model.
        compile_model: Function that compiles a model with the same arguments as `model`.
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
            self._model.test_on_batch(*task.example_batch())  # creates the metrics' variables

    @property
    def model(self) -> keras.Model:
        """The model to evaluate and save; only the chief has one."""
        if self._model is None:
            raise RuntimeError("`model` is available on the chief only, not on other workers")
        return self._model

    def update(self) -> None:
        """Copies the variables of the trained model. All workers must call this method."""
        if self._workers.num_replicas == 1:
            return
        arrays = take_snapshot(self._trained, self._workers)
        if self._workers.is_chief:
            restore_snapshot(self.model, arrays, Workers(tf.distribute.get_strategy()))

    def save(self, path: Path) -> None:
        """Writes the model to a temporary file and renames the file to `path`."""
        with replaced_file(path) as beside:
            self.model.save(beside)
