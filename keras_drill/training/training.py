"""The training loop of a run."""

import hashlib
import math
import os
import shlex
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_drill.callbacks import NonMonotonicAveraging, ResetState
from keras_drill.training.build_model import build_model
from keras_drill.training.build_sense_reallocation import build_sense_reallocation
from keras_drill.training.callbacks.checkpointing import Checkpointing
from keras_drill.training.callbacks.divergence_guard import DivergenceGuard
from keras_drill.training.callbacks.epoch_callback_list import EpochCallbackList
from keras_drill.training.callbacks.progress_lines import ProgressLines
from keras_drill.training.checkpoint_store import CheckpointStore
from keras_drill.training.config import RunConfig
from keras_drill.training.history_file import write_history
from keras_drill.training.prepared_text import PreparedText
from keras_drill.training.run_error import RunError
from keras_drill.training.run_folder import RunFolder
from keras_drill.training.snapshot import restore_snapshot, take_snapshot
from keras_drill.training.stop_signal import StopSignal
from keras_drill.training.training_state import TrainingState

_AVERAGING, _REALLOCATION = "averaging/", "reallocation/"


class Training:
    """Trains the model of a run, from the beginning or from the last checkpoint.

    All that a training depends on is in its checkpoints: variables (recurrent state and random
    seeds among them), the place in the text, the best loss so far and the history. So a training
    that is killed and resumed ends with the same bits as one that is not.

    Args:
        config: the options.
        folder: the folder, checked and locked.
        text: the text.
    """

    def __init__(self, config: RunConfig, folder: RunFolder, text: PreparedText):
        self.config = config
        self.folder = folder
        self.text = text
        self.state = TrainingState()
        self._store = CheckpointStore(folder.checkpoints)
        self._fingerprints = {
            "vocabulary": _digest("\n".join(text.vocabulary.tokens).encode()),
            "text": _digest(b"".join(ids.tobytes() for ids in text.splits.values())),
        }
        self._arrays = self._load()
        self._writer = None
        self._averaging = None
        if config.optimizer.kind == "nt-asgd":
            self._averaging = NonMonotonicAveraging(
                "val_perplexity", config.optimizer.nonmonotone_interval
            )
        self._reallocation = build_sense_reallocation(config, folder, self._averaging)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.state.stopped_early or self.state.epoch >= self.config.training.epochs

    def run(self) -> None:
        """Trains to the end. Raises `Interrupted` after Ctrl-C and `RunError` on divergence."""
        command = f"keras-drill train --run {shlex.quote(os.path.relpath(self.folder.path))}"
        with StopSignal(command) as stop_signal:
            self._run(stop_signal)

    def _run(self, stop_signal: StopSignal) -> None:
        batches = self.text.training_batches(self.config)
        valid = self.text.evaluation_batches(self.config, "valid").dataset()
        self.model = build_model(self.config, len(self.text.vocabulary), batches)
        if self._arrays is not None:
            self._make_all_variables()
        if self.config.training.tensorboard:
            self._writer = tf.summary.create_file_writer(str(self.folder.logs))
        every = self.config.training.checkpoint_every
        progress = keras.callbacks.ProgbarLogger() if sys.stdout.isatty() else ProgressLines()
        callbacks = EpochCallbackList(
            [
                ResetState(),
                # Before the averaging, which may have to take the restored average out.
                keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: self._restore()),
                DivergenceGuard(self.state),
                *self._with_state().values(),
                progress,
                Checkpointing(self.state, every, self._save, stop_signal),
            ],
            model=self.model,
            epochs=self.config.training.epochs,
            steps=batches.num_batches,
            verbose=1,
        )
        callbacks.begin()
        while not self.finished:
            callbacks.first_batch = self.state.batch
            history = self.model.fit(
                batches.dataset(self.state.epoch, first_batch=self.state.batch),
                validation_data=valid,
                initial_epoch=self.state.epoch,
                epochs=self.state.epoch + 1,
                shuffle=False,
                callbacks=callbacks,
            )
            self._end_epoch({name: values[-1] for name, values in history.history.items()})
            if stop_signal.received and not self.finished:
                stop_signal.raise_interrupted()
        callbacks.end()

    def _end_epoch(self, values: dict[str, float]) -> None:
        state = self.state
        loss = math.log(values["val_perplexity"])
        state.history.append({**values, "seconds": state.epoch_seconds})
        state.epoch, state.batch, state.epoch_seconds = state.epoch + 1, 0, 0.0
        if loss < state.best_loss:
            state.best_loss, state.best_epoch = loss, state.epoch
            self._save_model()
        patience = self.config.training.patience
        state.stopped_early = 0 < patience <= state.epoch - state.best_epoch
        write_history(self.folder.history_file, state.history)
        if self._writer is not None:
            self._write_curves(state.history[-1])
        # An epoch begins with no state and no sums; so does one that begins with a checkpoint.
        self.model.backbone.reset_state()
        self.model.reset_metrics()
        self._save()

    def _with_state(self) -> dict[str, keras.callbacks.Callback]:
        """Callbacks that have a state of their own, by the prefix of its names in checkpoints."""
        # Senses move before the weights are averaged.
        callbacks = {_REALLOCATION: self._reallocation, _AVERAGING: self._averaging}
        return {prefix: one for prefix, one in callbacks.items() if one is not None}

    def _save_model(self) -> None:
        beside = self.folder.path / ".model.keras"
        self.model.save(beside)
        os.replace(beside, self.folder.model_file)

    def _write_curves(self, values: dict[str, float]) -> None:
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(name, value, step=self.state.epoch)
        self._writer.flush()

    def _save(self) -> None:
        arrays = take_snapshot(self.model)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise RunError(
                f"a weight became NaN or infinite at step {self.state.step}; the checkpoints "
                "before it and the best model are kept. A smaller optimizer.learning_rate or "
                "optimizer.clip_norm in a new run may help"
            )
        for prefix, callback in self._with_state().items():
            own = callback.get_state()
            arrays.update({f"{prefix}{name}": array for name, array in own.items()})
        state = {"training": self.state.to_mapping(), "fingerprints": self._fingerprints}
        self._store.save(self.state.step, arrays, state)

    def _load(self) -> dict[str, np.ndarray] | None:
        """Takes over the state of the last checkpoint and returns its arrays."""
        checkpoint = self._store.load_latest()
        if checkpoint is None:
            return None
        arrays, state = checkpoint
        for name, fingerprint in self._fingerprints.items():
            if state["fingerprints"][name] != fingerprint:
                raise RunError(
                    f"the {name} is not the one that the checkpoints in {self.folder.path} were "
                    "made with; bring it back, or train in another folder"
                )
        self.state.assign(state["training"])
        return arrays

    def _make_all_variables(self) -> None:
        """Makes those of the optimizer and the metrics too, which Keras makes when it first can."""
        self.model.optimizer.build(self.model.trainable_variables)
        tokens = np.zeros((self.config.data.batch_size, 1), "int32")
        self.model.test_on_batch(tokens, tokens)

    def _restore(self) -> None:
        """Brings all variables back to the checkpoint, once."""
        if self._arrays is not None:
            for prefix, callback in self._with_state().items():
                own = [name for name in self._arrays if name.startswith(prefix)]
                callback.set_state(
                    {name.removeprefix(prefix): self._arrays.pop(name) for name in own}
                )
            restore_snapshot(self.model, self._arrays)
            self._arrays = None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
