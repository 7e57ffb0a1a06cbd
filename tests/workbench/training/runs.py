"""Trainings that are killed and resumed."""

import keras
import numpy as np

from keras_drill.distribute import strategy
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.callbacks import Checkpointing
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.training import Training
from keras_drill.workbench.training.workers import Workers


class Killed(Exception):
    pass


def make_training(config, folder):
    task = make_task(config)
    words = task.make_vocabulary(folder.path)
    training = Training(
        task, folder, words, task.read_texts(words), Workers(strategy(config.training.strategy))
    )
    folder.write_config(config)
    words.save(folder.path)
    return training


def train(config, folder):
    folder = RunFolder(folder)
    with folder.lock():
        training = make_training(config, folder)
        if not training.finished:
            training.prepare()
            training.run()
            training.average()
    return training


def last_checkpoint(training):
    return training._store.load_latest()


def kill_at(monkeypatch, step):
    """Makes the training end without a word after a step, as a kill does."""
    original = Checkpointing.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        original(self, batch, logs)
        if self.state.step == step:
            raise Killed

    monkeypatch.setattr(Checkpointing, "on_train_batch_end", on_train_batch_end)


def assert_same_bits(whole, resumed, changed=None):
    """Two trainings ended with the same variables, state and best model.

    `changed` is the option whose value was changed for the second one, which its state records.
    """
    arrays, state = last_checkpoint(whole)
    arrays_again, state_again = last_checkpoint(resumed)
    assert arrays.keys() == arrays_again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[name], err_msg=name)
    for one in (state, state_again):
        for epoch in one["training"]["history"]:
            del epoch["seconds"]
    if changed is not None:
        assert [change["option"] for change in state_again["training"].pop("changes")] == [changed]
        assert state["training"].pop("changes") == []
        section, _, key = changed.partition(".")
        assert state["options"][section].pop(key) != state_again["options"][section].pop(key)
    assert state == state_again
    models = [keras.saving.load_model(t.folder.model_file, compile=False) for t in (whole, resumed)]
    for a, b in zip(models[0].variables, models[1].variables, strict=True):
        np.testing.assert_array_equal(a, b)
