import numpy as np
import pytest

from keras_drill.training.checkpoint_store import CheckpointStore
from keras_drill.training.run_error import RunError


def test_the_last_two_are_kept(tmp_path):
    store = CheckpointStore(tmp_path)
    for step in (2, 3, 5, 7):
        store.save(step, {"a": np.full(3, step)}, {"step": step})
    assert store.steps() == [5, 7]
    arrays, state = store.load_latest()
    np.testing.assert_array_equal(arrays["a"], [7, 7, 7])
    assert state == {"step": 7}


def test_what_a_killed_process_left_half_written_is_passed_over(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(2, {"a": np.zeros(3)}, {})
    (tmp_path / ".writing").mkdir()
    (tmp_path / ".writing" / "arrays.npz").write_bytes(b"half")
    assert store.steps() == [2]
    store.save(3, {"a": np.ones(3)}, {})
    assert store.load_latest()[0]["a"][0] == 1


@pytest.mark.parametrize("name", ["arrays.npz", "state.json"])
def test_a_damaged_checkpoint_is_named(tmp_path, name):
    store = CheckpointStore(tmp_path)
    store.save(2, {"a": np.zeros(3)}, {})
    (tmp_path / "step-00000002" / name).write_bytes(b"{")
    with pytest.raises(RunError, match=r"step-00000002 cannot be read"):
        store.load_latest()


def test_nothing_is_there_at_first(tmp_path):
    assert CheckpointStore(tmp_path / "none").load_latest() is None
