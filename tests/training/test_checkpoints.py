import numpy as np
import pytest

from keras_drill.tasks.errors import RunError
from keras_drill.training.checkpoints import CheckpointStore


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


def damage(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name, how",
    [(name, how) for name in ("arrays.npz", "state.json") for how in ("empty", "missing")]
    + [
        (name, how)
        for name in ("arrays.npz", "state.json", "checksums.json")
        for how in ("flipped", "truncated")
    ],
)
def test_a_damaged_checkpoint_is_passed_over(tmp_path, name, how, capsys):
    store = CheckpointStore(tmp_path)
    store.save(2, {"a": np.arange(3), "b": np.array(1.0)}, {"step": 2})
    store.save(3, {"a": np.arange(4), "b": np.array(2.0)}, {"step": 3})
    file = tmp_path / "step-00000003" / name
    content = file.read_bytes()
    places = range(0, len(content), 7) if how == "flipped" else [0]
    for place in places:
        file.write_bytes(content)
        if how == "flipped":
            damage(file, place)
        elif how == "missing":
            file.unlink()
        else:
            file.write_bytes(content[: len(content) // 2] if how == "truncated" else b"")
        again = CheckpointStore(tmp_path)
        arrays, state = again.load_latest()
        if state["step"] == 3:  # a bit that says nothing, such as the time in the zip file
            np.testing.assert_array_equal(arrays["a"], np.arange(4))
            assert (arrays["b"], state) == (2.0, {"step": 3})
            continue
        assert (arrays["b"], state) == (1.0, {"step": 2})
        said = capsys.readouterr().err
        assert "step-00000003 is damaged (" in said and "going on from step 2" in said
        assert said.count("\n") == 1
    again.save(3, {"a": np.arange(5)}, {"step": 3})
    np.testing.assert_array_equal(CheckpointStore(tmp_path).load_latest()[0]["a"], np.arange(5))


def test_nothing_but_damaged_checkpoints_is_no_beginning(tmp_path):
    CheckpointStore(tmp_path).save(2, {"a": np.zeros(3)}, {})
    (tmp_path / "step-00000002" / "state.json").write_bytes(b"{")
    with pytest.raises(RunError, match=r"step-00000002 is damaged .* no other that is whole"):
        CheckpointStore(tmp_path).load_latest()
    with pytest.raises(RunError, match="no checkpoint of step 7; there are: 2"):
        CheckpointStore(tmp_path).load(7)


def test_stray_files_are_left_alone(tmp_path):
    store = CheckpointStore(tmp_path, keep=1)
    for name in ("step-notes.txt", "step-00000009", "step-"):
        (tmp_path / name).write_text("")
    for step in (1, 2):
        store.save(step, {}, {"step": step})
    assert store.steps() == [2] and store.load_latest()[1] == {"step": 2}
    assert len(list(tmp_path.iterdir())) == 4


def test_the_mean_of_the_last_checkpoints(tmp_path):
    store = CheckpointStore(tmp_path, keep=3)
    for step in (1, 2, 3, 4):
        store.save(step, {"a": np.full(2, step, "float32"), "b": np.array(step)}, {})
    arrays = store.mean(2, {"a"})
    np.testing.assert_array_equal(arrays["a"], [3.5, 3.5])
    assert arrays["a"].dtype == "float32" and arrays["b"] == 4
    np.testing.assert_array_equal(store.mean(9, {"a"})["a"], [3, 3])


def test_nothing_is_there_at_first(tmp_path):
    assert CheckpointStore(tmp_path / "none").load_latest() is None
