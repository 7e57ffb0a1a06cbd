"""A training in a process of its own that is interrupted, killed, and resumed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from keras_drill.training.checkpoints import CheckpointStore
from tests.training.tiny import tiny_config


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
    assert "To go on: keras-drill train --run" in said and "Traceback" not in said

    torn = start(config, tmp_path / "torn")
    wait_for_step(tmp_path / "torn", 120)
    torn.kill()
    torn.wait()

    torn = start(config, tmp_path / "torn")
    said, _ = torn.communicate(timeout=600)
    assert torn.returncode == 0 and "resuming at epoch" in said, said
    said, _ = whole.communicate(timeout=600)
    assert whole.returncode == 0, said

    states = [
        CheckpointStore(tmp_path / name / "checkpoints").load_latest() for name in ("whole", "torn")
    ]
    (arrays, state), (arrays_again, state_again) = states
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[name], err_msg=name)
    assert state["training"]["step"] == state_again["training"]["step"]
    assert state["training"]["best_loss"] == state_again["training"]["best_loss"]
