"""Two workers, of which one, at random, is killed again and again."""

import time

import numpy as np
import pytest

from keras_drill.workbench.training.checkpoints import CheckpointStore
from tests.distribute.runs import assert_same_bits, train, training, wait_for_step
from tests.distribute.workers import ended
from tests.workbench.training.english import english_config, next_step_to_kill_at

pytestmark = pytest.mark.slow


def test_kills_of_one_of_two_workers(tmp_path, kills):
    """The other notices and ends by itself; both are started again; the end has the same bits."""
    options = tmp_path / "options.toml"
    options.write_text(
        english_config(tmp_path / "text", train_lines=90, training_epochs=2).to_toml()
    )
    train("multi-worker", options, tmp_path / "whole")
    random = np.random.default_rng()
    store = CheckpointStore(tmp_path / "torn" / "checkpoints")
    for _ in kills[::2]:  # each costs the start of two programs
        step = next_step_to_kill_at(store.steps(), random)
        with training("multi-worker", options, tmp_path / "torn") as processes:
            wait_for_step(tmp_path / "torn", step, processes)
            time.sleep(random.uniform(0, 0.05))
            victim = int(random.integers(2))
            assert [process.poll() for process in processes] == [None, None]
            processes[victim].kill()
            found = ended(processes)
        assert (found[victim][0], found[1 - victim][0]) == (-9, 1), found
        assert "another worker has ended" in found[1 - victim][1], found
    train("multi-worker", options, tmp_path / "torn")
    assert_same_bits(tmp_path / "whole", tmp_path / "torn")
