"""A training in a process of its own that is interrupted, killed, and resumed.

Checkpoints are written in the background, so a kill may come at any moment of that.
"""

import os
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest

from keras_drill.workbench.training.checkpoints import CheckpointStore
from tests.forked import program
from tests.workbench.training.english import english_config, next_step_to_kill_at
from tests.workbench.training.tiny import tiny_config


def start(config, folder):
    (folder.parent / "options.toml").write_text(config.to_toml())
    return subprocess.Popen(
        [sys.executable, "-m", "keras_drill_command", "train", folder.parent / "options.toml"]
        + ["--run", folder],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_step(folder, step):
    deadline = time.monotonic() + 600
    while max(CheckpointStore(folder / "checkpoints").steps(), default=0) < step:
        assert time.monotonic() < deadline
        time.sleep(0.01)


HEADS = {
    "drill": {"head_kind": "drill", "head_dropout": 0.3},
    "kerbs": {"head_kind": "kerbs", "senses_interval": 17, "senses_moved_embedding": "near"},
}


@pytest.mark.slow
@pytest.mark.parametrize("head, number", [("drill", signal.SIGINT), ("kerbs", signal.SIGTERM)])
def test_interrupted_and_killed_runs_end_with_the_same_bits(head, number, corpus, tmp_path):
    config = tiny_config(
        corpus,
        **HEADS[head],
        training_epochs=15,
        training_checkpoint_every=3,
        training_deterministic=True,
    )
    whole = start(config, tmp_path / "whole")
    torn = start(config, tmp_path / "torn")
    wait_for_step(tmp_path / "torn", 50)
    torn.send_signal(number)
    said, _ = torn.communicate(timeout=600)
    assert torn.returncode == 128 + number, said
    assert "To resume: keras-drill train --run" in said and "Traceback" not in said

    torn = start(config, tmp_path / "torn")
    wait_for_step(tmp_path / "torn", 120)
    torn.kill()
    torn.communicate()

    torn = start(config, tmp_path / "torn")
    said, _ = torn.communicate(timeout=600)
    assert torn.returncode == 0 and "resuming at epoch" in said, said
    said, _ = whole.communicate(timeout=600)
    assert whole.returncode == 0, said

    assert_same_end(tmp_path / "whole", tmp_path / "torn")


def assert_same_end(whole, torn):
    """The same variables, best model and history, to the last bit."""
    states = [CheckpointStore(folder / "checkpoints").load_latest() for folder in (whole, torn)]
    (arrays, state), (arrays_again, state_again) = states
    assert arrays.keys() == arrays_again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[name], err_msg=name)
    for each in (state, state_again):
        del each["training"]["epoch_seconds"]
        for epoch in each["training"]["history"]:
            del epoch["seconds"]
    histories = [each["training"].pop("history") for each in (state, state_again)]
    assert state == state_again
    for number, (epoch, epoch_again) in enumerate(zip(*histories, strict=True), start=1):
        assert epoch == epoch_again, number
    models = [keras.saving.load_model(folder / "model.keras") for folder in (whole, torn)]
    for a, b in zip(models[0].variables, models[1].variables, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_kills_of_a_training_on_english_prose(tmp_path, kills):
    (tmp_path / "options.toml").write_text(english_config(tmp_path / "text").to_toml())

    def training(name):
        words = ["train", tmp_path / "options.toml", "--run", tmp_path / name]
        return program("keras_drill_command", words, tmp_path / f"{name}.log")

    with training("whole") as whole:
        assert whole.wait() == 0, whole.said
    random = np.random.default_rng()
    store = CheckpointStore(tmp_path / "torn" / "checkpoints")
    for _ in kills:
        step = next_step_to_kill_at(store.steps(), random)
        with training("torn") as torn:
            wait_for_step(tmp_path / "torn", step)
            time.sleep(random.uniform(0, 0.05))  # any moment of a step or of a checkpoint
            assert torn.poll() is None, torn.said
    with training("torn") as torn:
        assert torn.wait() == 0, torn.said
    said = torn.said
    assert said.count("resuming at epoch") >= len(kills) and "damaged" not in said, said
    assert_same_end(tmp_path / "whole", tmp_path / "torn")
