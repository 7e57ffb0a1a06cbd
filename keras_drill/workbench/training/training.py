"""The training loop of a run."""

import math
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import keras
import numpy as np
import tensorflow as tf

import keras_drill
from keras_drill.callbacks import NonMonotonicAveraging, ResetState
from keras_drill.distribute import distribute_batches
from keras_drill.layers.carried_state import zero_carried_state
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.task import RunVocabulary, Task
from keras_drill.workbench.training.build_optimizer import (
    build_optimizer,
    learning_rate,
    record_gradient_norm,
    step_learning_rate,
    validation_factor,
)
from keras_drill.workbench.training.build_sense_reallocation import build_sense_reallocation
from keras_drill.workbench.training.callbacks import (
    Checkpointing,
    DivergenceGuard,
    EpochCallbackList,
    GradientNorm,
    ProgressLines,
    StopSignal,
    diverged,
)
from keras_drill.workbench.training.checkpoint_writer import CheckpointWriter, reason_of
from keras_drill.workbench.training.checkpoints import CheckpointStore, TrainingState
from keras_drill.workbench.training.evaluated_model import EvaluatedModel
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.option_changes import option_changes, recorded_options
from keras_drill.workbench.training.run_folder import RunFolder, write_history
from keras_drill.workbench.training.snapshot import (
    AVERAGING,
    callback_state,
    model_keys,
    restore_snapshot,
    restore_weights,
    take_snapshot,
)
from keras_drill.workbench.training.transfer_weights import transfer_weights
from keras_drill.workbench.training.workers import Workers

_REALLOCATION, _GRADIENT_NORM = "reallocation/", "gradient_norm/"


class Training:
    """Trains the model of a run, from the beginning or from the last checkpoint.

    Checkpoints contain everything on which a training depends: variables including recurrent states
    and random seeds, the position in the text, the best loss and the history. So a training that is
    killed and resumed gives the same result, bit for bit, as an uninterrupted training.

    Every worker has a `Training` and calls the same methods. Only the chief writes files and
    prints messages.

    Args:
        task: the task, with the options.
        folder: the folder of the run, after `check` and within `lock`.
        run_vocabulary: the vocabulary of the run.
        texts: the texts of the run, by split.
        workers: the workers that train.

    Raises:
        RunError: The data has no validation text, or the last checkpoint does not fit the run.
    """

    def __init__(
        self,
        task: Task,
        folder: RunFolder,
        run_vocabulary: RunVocabulary,
        texts: Mapping[str, Any],
        workers: Workers,
    ):
        config = task.config
        if "valid" not in texts:
            raise RunError(
                f"{config.data.path} has no validation text, which is needed to choose the best "
                "model; add a file such as 'valid.txt' to the folder"
            )
        self.task = task
        self.config = config
        self.folder = folder
        self.vocabulary = run_vocabulary
        self.texts = texts
        self.workers = workers
        self.state = TrainingState()
        self._store = CheckpointStore(folder.checkpoints, config.training.keep_checkpoints)
        self._checkpoints = CheckpointWriter(self._store)
        self._fingerprints = {
            "vocabulary": run_vocabulary.fingerprint,
            "text": task.fingerprint(texts),
        }
        self._options = recorded_options(config)
        self.new_changes: list[dict[str, Any]] = []  # options that differ from the checkpoint's
        self._arrays = self._load()
        self._batches = task.training_batches(run_vocabulary, texts["train"])
        self._valid = task.evaluation_batches(run_vocabulary, texts["valid"])
        self._writer: Any = None  # TensorBoard writer, if `training.tensorboard` is set
        with workers.strategy.scope():
            self._gradient_norm = GradientNorm()
        self._factor = 1.0
        self._averaging = None
        if config.optimizer.kind == "nt-asgd":
            interval = config.optimizer.nonmonotone_interval
            self._averaging = NonMonotonicAveraging(
                "val_perplexity", interval, average_from_start=interval == 0
            )
        writes_curves = config.training.tensorboard and workers.is_chief
        self._reallocation = build_sense_reallocation(
            config, folder.logs if writes_curves else None, self._averaging
        )

    @property
    def stopped_early(self) -> bool:
        """Whether the validation losses end the training, by the current `training.stopping`."""
        return self.state.has_stopped_improving(self.config)

    @property
    def finished(self) -> bool:
        """Whether the training has done all epochs or has stopped early."""
        return self.stopped_early or self.state.epoch >= self.config.training.epochs

    def prepare(self) -> None:
        """Builds the model, and prints the source of its weights.

        Invalid options raise an error here, before any file is written.
        """
        with self.workers.strategy.scope():
            self.model = self.task.build_model(self.vocabulary, self.workers.num_replicas)
            self._compile(self.model)
        self._evaluated = EvaluatedModel(
            self.model, self.task, self.vocabulary, self.workers, self._compile
        )
        if self._arrays is not None:
            self._make_all_variables()
            self._set_learning_rate()
        elif self.config.training.start_from:
            folder = RunFolder(self.config.training.start_from)
            self._print(
                transfer_weights(self.model, self.task, self.vocabulary, LoadedRun.load(folder))
            )
        if self._arrays is None and self._averaging is not None and self._averaging.averaging:
            self._print("the weights are averaged from the first step on")

    def _compile(self, model: keras.Model) -> None:
        optimizer = build_optimizer(self.config, self._batches)
        model.compile(
            record_gradient_norm(optimizer, self._gradient_norm.mean),
            metrics=[keras_drill.metrics.Perplexity()],
            jit_compile=self.config.training.jit_compile,
        )

    def _print(self, text: str) -> None:
        if self.workers.is_chief:
            print(text, flush=True)

    def run(self) -> None:
        """Trains until `finished`.

        Raises:
            Interrupted: Ctrl-C was pressed, or another signal was received.
            Diverged: The loss, a weight or the validation perplexity became NaN or infinite.
            RunError: The best model, the history or the last checkpoint cannot be written.
        """
        if self.workers.is_chief:
            self.folder.averaged_model_file.unlink(missing_ok=True)
        command = f"keras-drill train --run {shlex.quote(os.path.relpath(self.folder.path))}"
        with StopSignal(command) as stop_signal, self._checkpoints:
            self._run(stop_signal)
            self.workers.by_chief(self._checkpoints.require)

    def _run(self, stop_signal: StopSignal) -> None:
        if self.config.training.tensorboard and self.workers.is_chief:
            self._writer = tf.summary.create_file_writer(str(self.folder.logs))
        every = self.config.training.checkpoint_every
        progress: list[keras.callbacks.Callback] = []
        if self.workers.is_chief:
            terminal = sys.stdout.isatty()
            progress = [keras.callbacks.ProgbarLogger() if terminal else ProgressLines()]
        callbacks = EpochCallbackList(
            [
                ResetState(),
                # Before the averaging callback, which may have to swap out the restored average.
                keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: self._restore()),
                DivergenceGuard(self.state),
                *self._with_state().values(),
                *progress,
                Checkpointing(
                    self.state, every, self._save, self._checkpoints, stop_signal, self.workers
                ),
            ],
            model=self.model,
            epochs=self.config.training.epochs,
            steps=self._batches.num_batches,
            verbose=1,
        )
        callbacks.begin()
        while not self.finished:
            epoch, first = self.state.epoch, self.state.batch
            callbacks.first_batch = first
            history = self.model.fit(
                distribute_batches(self._batches, self.workers.strategy, epoch, first),
                steps_per_epoch=self._batches.num_batches - first,
                validation_data=distribute_batches(self._valid, self.workers.strategy),
                validation_steps=self._valid.num_batches,
                initial_epoch=epoch,
                epochs=epoch + 1,
                verbose=0,
                shuffle=False,
                callbacks=callbacks,
            )
            self._end_epoch({name: values[-1] for name, values in history.history.items()})
            if stop_signal.ask(self.workers) and not self.finished:
                self.workers.by_chief(self._checkpoints.require)
                self.workers.wait_until_known()
                stop_signal.raise_interrupted()
        callbacks.end()

    def repeat_epoch(self, watch: keras.callbacks.Callback) -> NoReturn:
        """Trains the rest of the current epoch until `watch` raises, without writing files.

        Args:
            watch: callback that raises an exception, at the latest after the last batch.
        """
        callbacks = EpochCallbackList(
            [
                ResetState(),
                keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: self._restore()),
                *self._with_state().values(),
                watch,
            ],
            model=self.model,
            epochs=self.config.training.epochs,
            steps=self._batches.num_batches,
            verbose=0,
        )
        callbacks.begin()
        callbacks.first_batch = self.state.batch
        self.model.fit(
            distribute_batches(
                self._batches, self.workers.strategy, self.state.epoch, self.state.batch
            ),
            steps_per_epoch=self._batches.num_batches - self.state.batch,
            verbose=0,
            shuffle=False,
            callbacks=callbacks,
        )
        raise AssertionError("`watch` must raise an exception at the last batch at the latest")

    def batch(self, number: int) -> tuple:
        """Returns a batch of the current epoch.

        Args:
            number: number of the batch in the epoch, from 0.
        """
        dataset = distribute_batches(self._batches, self.workers.strategy, self.state.epoch, number)
        return next(iter(dataset))

    @property
    def mean_gradient_norm(self) -> float:
        """The mean norm of the gradients in the current epoch so far."""
        return float(self._gradient_norm.mean.result())

    def _end_epoch(self, values: dict[str, float]) -> None:
        state = self.state
        perplexity = values["val_perplexity"]
        if not math.isfinite(perplexity):
            raise diverged(f"the validation perplexity became {perplexity}", state)
        self._check_finite({v.path: keras.ops.convert_to_numpy(v) for v in self.model.weights})
        if self._averaging is not None:
            if self._averaging.averaging and not self._averaging.num_averaged:
                self._print(
                    f"validation has stopped improving: weights are averaged from epoch "
                    f"{self.state.epoch + 2} on"
                )
            values["averaged_steps"] = self._averaging.num_averaged
        self._evaluated.update()
        values = self.workers.by_chief(lambda: self._with_scores(values))
        loss = self.task.validation_loss(values)
        state.history.append({**values, **self._figures(), "seconds": state.epoch_seconds})
        state.losses.append(loss)
        state.epoch, state.batch, state.epoch_seconds = state.epoch + 1, 0, 0.0
        if loss < state.best_loss:
            state.best_loss, state.best_epoch = loss, state.epoch
        self.workers.by_chief(self._write_epoch)
        if self._writer is not None:
            self._write_curves(state.history[-1])
        # The checkpoint must hold the state at the start of the next epoch: zero states, empty
        # metrics.
        zero_carried_state(self.model)
        self.model.reset_metrics()
        self._set_learning_rate()
        self._save()

    def _with_scores(self, values: dict[str, float]) -> dict[str, float]:
        return values | self.task.validation_scores(
            self._evaluated.model, self.vocabulary, self.texts
        )

    def _write_epoch(self) -> None:
        """Writes the history, and the model if its loss is the best so far."""
        try:
            if not self.folder.path.is_dir():
                raise FileNotFoundError("the folder of the run was removed")
            if self.state.best_epoch == self.state.epoch:
                self._evaluated.save(self.folder.model_file)
            write_history(self.folder.history_file, self.state.history)
        except OSError as error:
            self._checkpoints.finish()
            steps = self._store.steps()
            kept = f"the checkpoint of step {steps[-1]}" if steps else "the beginning"
            raise RunError(
                f"{self.folder.path}: epoch {self.state.epoch} cannot be written "
                f"({reason_of(error)}); existing files are kept, and training resumes from {kept}"
            ) from error

    def _figures(self) -> dict[str, float]:
        """Returns learning rate and number of tokens of the finished epoch, for the history."""
        rate = learning_rate(self.config, self._batches.num_batches, self._factor)
        if callable(rate):
            rate = float(rate(self.state.step - 1))
        tokens = (self.state.epoch + 1) * self._batches.num_targets
        return {"learning_rate": rate, "tokens": tokens}

    def _set_learning_rate(self) -> None:
        """Sets the learning rate of the next epoch if `optimizer.validation_decay` changes it."""
        losses = [self.task.validation_loss(values) for values in self.state.history]
        factor = validation_factor(self.config, losses)
        if factor == self._factor:
            return
        self._factor = factor
        rate = step_learning_rate(self.config, self._batches, factor)
        self.model.optimizer.learning_rate = rate
        if callable(rate):  # a schedule is a part of the compiled step
            self.model.make_train_function(force=True)

    def _with_state(self) -> dict[str, keras.callbacks.Callback]:
        """Returns the callbacks that have state, by the prefix of their arrays in checkpoints."""
        # Senses move before the weights are averaged.
        callbacks = {
            _GRADIENT_NORM: self._gradient_norm,
            _REALLOCATION: self._reallocation,
            AVERAGING: self._averaging,
        }
        return {prefix: one for prefix, one in callbacks.items() if one is not None}

    def average(self) -> None:
        """Saves the mean of the last checkpoints if its validation loss is the best.

        `LoadedRun.load` then loads this model instead of the model of the best epoch. Only the
        chief calls this method.
        """
        self.folder.averaged_model_file.unlink(missing_ok=True)
        number = self.config.training.average_checkpoints
        if number < 2:
            return
        weights = model_keys(self._evaluated.model).items()
        trained = {f"model/{key}" for key, variable in weights if variable.trainable}
        restore_weights(self._evaluated.model, self._store.mean(number, trained))
        figures = self._evaluated.model.evaluate(
            self._valid.dataset(), callbacks=[ResetState()], verbose=0, return_dict=True
        )
        values = self._with_scores({f"val_{name}": value for name, value in figures.items()})
        loss = self.task.validation_loss(values)
        print(
            f"mean of the last {number} checkpoints: {self.task.describe_loss(loss)}; the best "
            f"epoch: {self.task.describe_loss(self.state.best_loss)}"
        )
        if loss < self.state.best_loss:
            self._evaluated.save(self.folder.averaged_model_file)

    def _write_curves(self, values: dict[str, float]) -> None:
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=self.state.epoch)
        self._writer.flush()

    def _save(self) -> None:
        arrays = take_snapshot(self.model, self.workers)
        self._check_finite(arrays)
        for prefix, callback in self._with_state().items():
            own = callback.get_state()
            arrays.update({f"{prefix}{name}": array for name, array in own.items()})
        state = {
            "training": self.state.to_mapping(),
            "fingerprints": self._fingerprints,
            "options": self._options,
        }
        if self.workers.is_chief:
            self._checkpoints.begin(self.state.step, arrays, state)

    def _check_finite(self, arrays: Mapping[str, np.ndarray]) -> None:
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise diverged("a weight became NaN or infinite", self.state)

    def _load(self) -> dict[str, np.ndarray] | None:
        """Restores the training state of the last checkpoint, and returns its arrays.

        Returns:
            The arrays, or `None` if there is no checkpoint.
        """
        checkpoint = self._load_with_chief()
        if checkpoint is None:
            return None
        arrays, state = checkpoint
        for name, fingerprint in self._fingerprints.items():
            if state["fingerprints"][name] != fingerprint:
                raise RunError(
                    f"the {name} differs from the {name} that the checkpoints in "
                    f"{self.folder.path} were made with; restore the original {name}, or train in "
                    "another folder with --run"
                )
        self.state.assign(state["training"])
        if not self.state.losses:  # a checkpoint of an old version
            self.state.losses = [self.task.validation_loss(each) for each in self.state.history]
        # Checkpoints of old versions do not store their options.
        changes = option_changes(self.config, state.get("options", self._options))
        self.new_changes = [
            {
                "option": change.name,
                "before": change.before,
                "now": change.now,
                "epoch": self.state.epoch + 1,
                "batch": self.state.batch + 1,
            }
            for change in changes
        ]
        self.state.changes += self.new_changes
        return arrays

    def _load_with_chief(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Loads the last checkpoint that the chief finds undamaged, on all workers."""
        loaded = None

        def load() -> int:
            nonlocal loaded
            loaded = self._store.load_latest()
            return -1 if loaded is None else loaded[1]["training"]["step"]

        step = self.workers.by_chief(load)
        if step < 0 or self.workers.is_chief:
            return loaded
        return self._store.load(step)

    def _make_all_variables(self) -> None:
        """Creates the variables of optimizer and metrics. Keras creates them at the first step."""
        self.model.optimizer.build(self.model.trainable_variables)
        self.model.test_on_batch(*self.task.example_batch(self.workers.num_replicas))

    def _restore(self) -> None:
        """Assigns all variables from the loaded checkpoint. Further calls do nothing."""
        if self._arrays is not None:
            for prefix, callback in self._with_state().items():
                own = callback_state(prefix, self._arrays)
                for name in own:
                    del self._arrays[f"{prefix}{name}"]
                if own:
                    callback.set_state(own)
            restore_snapshot(self.model, self._arrays, self.workers)
            self._arrays = None
