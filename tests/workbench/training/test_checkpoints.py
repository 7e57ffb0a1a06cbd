import hashlib
import json
import shutil
import zipfile

import numpy as np
import pytest

from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.checkpoints import CheckpointStore, TrainingState


def test_the_last_two_are_kept(tmp_path):
    store = CheckpointStore(tmp_path)
    for step in (2, 3, 5, 7):
        store.save(step, {"a": np.full(3, step)}, {"step": step})
    assert store.steps() == [5, 7]
    arrays, state = store.load_latest()
    np.testing.assert_array_equal(arrays["a"], [7, 7, 7])
    assert state == {"step": 7}


def test_the_checkpoint_of_a_step_is_not_written_again(tmp_path):
    """A training that is finished saves nothing new, and must not risk what is there."""
    store = CheckpointStore(tmp_path)
    for step in (2, 3):
        store.save(step, {"a": np.full(3, step)}, {"step": step})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for step in (2, 3):
        store.save(step, {"a": np.full(5, -1.0)}, {"step": -1})
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    np.testing.assert_array_equal(store.load(3)[0]["a"], [3, 3, 3])


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
        assert "step-00000003 is damaged (" in said and "using the checkpoint of step 2" in said
        assert said.count("\n") == 1
    again.save(3, {"a": np.arange(5)}, {"step": 3})
    np.testing.assert_array_equal(CheckpointStore(tmp_path).load_latest()[0]["a"], np.arange(5))


def write_two(folder, random):
    store = CheckpointStore(folder)
    for step in (2, 3):
        arrays = {
            "model/a": random.standard_normal((7, 5), "float32"),
            "model/b": random.integers(9, size=11),
            "optimizer/a": random.standard_normal((7, 5), "float32"),
            "scalar": np.array(step),
        }
        store.save(step, arrays, {"training": {"step": step, "loss": float(random.random())}})


def flip_array(folder, random):
    """A bit of an array, with the checksum of the zip file made to fit: the last defence."""
    path = folder / "arrays.npz"
    with np.load(path) as file:
        arrays = dict(file)
    array = arrays[str(random.choice(sorted(arrays)))].reshape(-1)
    array.view("uint8")[random.integers(array.nbytes)] ^= 1 << random.integers(8)
    np.savez(path, **arrays)


def flip_file(folder, random):
    """A bit of what is stored: names, headers and contents of arrays, or any of the state."""
    name = str(random.choice(["arrays.npz", "state.json"]))
    content = (folder / name).read_bytes()
    place = random.integers(len(content))
    if name == "arrays.npz":
        with zipfile.ZipFile(folder / name) as file:
            one = random.choice(file.infolist())
        place = random.integers(one.file_size) + content.index(b"\x93NUMPY", one.header_offset)
    damage(folder / name, place)


def truncate(folder, random):
    path = random.choice(sorted(folder.iterdir()))
    path.write_bytes(path.read_bytes()[: random.integers(path.stat().st_size)])


def lose(folder, random):
    random.choice(sorted(folder.iterdir())).unlink()


def take_from_other(folder, random):
    path = random.choice(sorted(folder.iterdir()))
    shutil.copy(folder.parent / "step-00000002" / path.name, path)


def take_other(folder, random):
    shutil.rmtree(folder)
    shutil.copytree(folder.parent / "step-00000002", folder)


def edit_arrays(folder, random):
    """An array less, one more, or two that have changed places."""
    with np.load(folder / "arrays.npz") as file:
        arrays = dict(file)
    how = random.integers(3)
    if how == 0:
        del arrays[str(random.choice(sorted(arrays)))]
    elif how == 1:
        arrays["another"] = np.zeros(3)
    else:
        arrays["model/a"], arrays["optimizer/a"] = arrays["optimizer/a"], arrays["model/a"]
    np.savez(folder / "arrays.npz", **arrays)


def write_zeros(folder, random):
    """As after a loss of power: the length is right, the content was never written."""
    path = random.choice(sorted(folder.iterdir()))
    path.write_bytes(bytes(path.stat().st_size))


DAMAGES = (
    flip_array,
    flip_file,
    truncate,
    lose,
    take_from_other,
    take_other,
    edit_arrays,
    write_zeros,
)


def test_all_of_a_hundred_damages_are_found(tmp_path, capsys):
    for seed in range(100):
        random = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        write_two(folder, random)
        whole, _ = CheckpointStore(folder).load(2)
        how = DAMAGES[seed % len(DAMAGES)]
        how(folder / "step-00000003", random)
        with pytest.raises(RunError, match="step-00000003 is damaged"):
            CheckpointStore(folder).load(3)
        arrays, state = CheckpointStore(folder).load_latest()
        assert state["training"]["step"] == 2, (seed, how)
        np.testing.assert_array_equal(arrays["model/a"], whole["model/a"])
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "using the checkpoint of step 2" in said
        assert "step-00000003 is damaged (" in said and "()" not in said


@pytest.mark.parametrize("version", ["without checksums", "without the step"])
def test_checkpoints_of_old_versions_are_read(version, tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(2, {"a": np.arange(3)}, {"epoch": 1})
    folder = tmp_path / "step-00000002"
    (folder / "state.json").write_text('{"epoch": 1}')
    if version == "without checksums":
        (folder / "checksums.json").unlink()
    else:
        array = json.loads((folder / "checksums.json").read_text())["arrays"]["a"]
        digest = hashlib.sha256(b'{"epoch": 1}').hexdigest()
        (folder / "checksums.json").write_text(
            json.dumps({"arrays": {"a": array}, "state": digest})
        )
    arrays, state = store.load(2)
    np.testing.assert_array_equal(arrays["a"], [0, 1, 2])
    assert state == {"epoch": 1}
    np.savez(folder / "arrays.npz", a=np.arange(1, 4))
    if version == "without the step":
        with pytest.raises(RunError, match=r"the checksum of a in arrays\.npz is wrong"):
            store.load(2)


def test_nothing_but_damaged_checkpoints_is_no_beginning(tmp_path):
    CheckpointStore(tmp_path).save(2, {"a": np.zeros(3)}, {})
    (tmp_path / "step-00000002" / "state.json").write_bytes(b"{")
    with pytest.raises(RunError, match=r"step-00000002 is damaged .* no undamaged checkpoint"):
        CheckpointStore(tmp_path).load_latest()
    with pytest.raises(RunError, match="no checkpoint of step 7; steps with a checkpoint: 2"):
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


def test_the_mean_is_taken_without_damaged_checkpoints(tmp_path, capsys):
    store = CheckpointStore(tmp_path, keep=4)
    for step in (1, 2, 3, 4):
        store.save(step, {"a": np.full(2, step, "float32")}, {})
    path = tmp_path / "step-00000003" / "arrays.npz"
    damage(path, path.read_bytes().index(b"NUMPY"))
    np.testing.assert_array_equal(store.mean(2, {"a"})["a"], [3, 3])
    assert "step-00000003 is damaged" in capsys.readouterr().err
    damage(tmp_path / "step-00000004" / "arrays.npz", 0)
    np.testing.assert_array_equal(store.mean(2, {"a"})["a"], [1.5, 1.5])
    error = capsys.readouterr().err
    assert "step-00000004 is damaged" in error and "allow_pickle" not in error


def test_damage_to_the_state_is_noticed_by_who_asks_how_far_it_came(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(2, {}, {"training": TrainingState(epoch=3).to_mapping()})
    assert store.progress().epoch == 3
    path = tmp_path / "step-00000002" / "state.json"
    path.write_text(path.read_text().replace('"epoch": 3', '"epoch": 7'))
    with pytest.raises(RunError, match=r"damaged \(the checksum of state\.json is wrong"):
        store.progress()


def test_no_memory_is_asked_for_that_an_array_does_not_fill(tmp_path):
    store = CheckpointStore(tmp_path)
    store.save(2, {"a": np.zeros(3)}, {})
    path = tmp_path / "step-00000002" / "arrays.npz"
    with zipfile.ZipFile(path) as file:
        array = file.read("a.npy")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.npy", array.replace(b"(3,), }" + 9 * b" ", b"(3000000000,), }"))
    with pytest.raises(RunError, match=r"the length of a\.npy does not match shape"):
        store.load(2)


def test_nothing_is_there_at_first(tmp_path):
    assert CheckpointStore(tmp_path / "none").load_latest() is None
