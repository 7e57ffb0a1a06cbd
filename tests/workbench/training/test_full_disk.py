"""Disks that are full, read-only or gone while a training writes to them."""

import contextlib
import errno
import os
import shutil
import subprocess
import threading

import numpy as np
import pytest

from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training import checkpoints
from keras_drill.workbench.training.checkpoint_writer import CheckpointWriter
from keras_drill.workbench.training.checkpoints import CheckpointStore
from tests.workbench.training.runs import assert_same_bits, train
from tests.workbench.training.tiny import tiny_config

# Each place at which the system may refuse while a checkpoint is written.
PLACES = ("mkdir", "savez", "dump", "fsync", "rename")


def refuse(monkeypatch, place, number, times=1):
    """Lets one kind of call fail so many times; afterwards it works again."""
    module = {"savez": checkpoints.np, "dump": checkpoints.json, "mkdir": checkpoints.Path}
    module = module.get(place, checkpoints.os)
    original, left = getattr(module, place), [times]

    def call(*args, **kwargs):
        if left[0]:
            left[0] -= 1
            raise OSError(number, os.strerror(number))
        return original(*args, **kwargs)

    monkeypatch.setattr(module, place, call)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("place", PLACES)
def test_a_checkpoint_that_is_refused_leaves_the_one_before(
    place, number, tmp_path, monkeypatch, capsys
):
    store = CheckpointStore(tmp_path)
    with CheckpointWriter(store) as writer:
        writer.begin(2, {"a": np.zeros(3)}, {"step": 2})
        writer.finish()
        with monkeypatch.context() as broken:
            refuse(broken, place, number)
            writer.begin(3, {"a": np.ones(3)}, {"step": 3})
            writer.finish()
        said = capsys.readouterr().err
        assert f"({os.strerror(number)}); the checkpoint of step 2 is kept" in said
        assert said.count("\n") == 1
        assert store.load_latest()[1] == {"step": 2}
        assert [path.name for path in tmp_path.iterdir()] == ["step-00000002"]
        with pytest.raises(RunError, match="a checkpoint cannot be written"):
            writer.require()
        writer.begin(4, {"a": np.ones(3)}, {"step": 4})
        writer.require()
    assert store.load_latest()[1] == {"step": 4}


def test_other_errors_reach_the_training(tmp_path, monkeypatch):
    monkeypatch.setattr(CheckpointStore, "save", lambda *args: {}["missing"])
    writer = CheckpointWriter(CheckpointStore(tmp_path))
    writer.begin(2, {}, {})
    writer._thread.join()
    with pytest.raises(KeyError, match="missing"):
        writer.poll()
    writer.begin(3, {}, {})
    with pytest.raises(KeyError, match="missing"):
        writer.begin(4, {}, {})


def test_the_one_before_stays_until_the_new_one_is_complete(tmp_path, monkeypatch):
    may_go_on, original = threading.Event(), os.rename
    store = CheckpointStore(tmp_path, keep=1)
    store.save(2, {"a": np.zeros(3)}, {})

    def rename(*args):
        may_go_on.wait(60)
        original(*args)

    monkeypatch.setattr(checkpoints.os, "rename", rename)
    with CheckpointWriter(store) as writer:
        writer.begin(3, {"a": np.ones(3)}, {})
        writer.poll()
        assert store.steps() == [2]
        may_go_on.set()
    assert store.steps() == [3]
    assert store.load(3)[0]["a"][0] == 1


def test_the_bytes_are_those_of_the_foreground(tmp_path):
    folders = [tmp_path / "foreground", tmp_path / "background"]
    arrays, state = {"a": np.arange(7.0), "b": np.array(3)}, {"step": 2}
    CheckpointStore(folders[0]).save(2, arrays, state)
    with CheckpointWriter(CheckpointStore(folders[1])) as writer:
        writer.begin(2, arrays, state)
    for name in ("state.json", "checksums.json", "arrays.npz"):
        one, other = ((folder / "step-00000002" / name).read_bytes() for folder in folders)
        if name == "arrays.npz":  # NumPy gives every member the same time
            assert len(one) == len(other)
        assert one == other


@pytest.mark.slow
def test_a_training_goes_on_where_checkpoints_are_refused(corpus, tmp_path, monkeypatch, capsys):
    config = tiny_config(corpus, training_checkpoint_every=5, training_deterministic=True)
    whole = train(config, tmp_path / "whole")
    with monkeypatch.context() as broken:
        refuse(broken, "savez", errno.ENOSPC, times=3)
        refused = train(config, tmp_path / "refused")
    assert capsys.readouterr().err.count("No space left on device") == 3
    assert_same_bits(whole, refused)


@pytest.mark.slow
def test_a_folder_that_vanishes_is_told_and_does_not_come_back(corpus, tmp_path, monkeypatch):
    config = tiny_config(corpus)
    folder = tmp_path / "run"
    monkeypatch.setattr(
        "keras_drill.workbench.training.training.Training._check_finite",
        lambda self, arrays: shutil.rmtree(folder, ignore_errors=True),
    )
    with pytest.raises(RunError, match=r"epoch 1 cannot be written \(the folder of the run was"):
        train(config, folder)
    assert not folder.exists()


@contextlib.contextmanager
def small_disk(path, kilobytes):
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user cannot mount a tmpfs")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.slow
def test_a_full_disk_loses_nothing(corpus, tmp_path, monkeypatch, capsys):
    config = tiny_config(corpus, training_checkpoint_every=5, training_deterministic=True)
    whole = train(config, tmp_path / "whole")
    with small_disk(tmp_path / "disk", 1500) as disk:
        folder = disk / "run"
        fill, save = disk / "fill", CheckpointStore.save

        def save_on_full_disk(store, step, *args):
            if step >= 35:  # in the second epoch
                with contextlib.suppress(OSError), open(fill, "ab", buffering=0) as file:
                    while True:
                        file.write(bytes(4096))
            save(store, step, *args)

        with monkeypatch.context() as full:
            full.setattr(CheckpointStore, "save", save_on_full_disk)
            with pytest.raises(RunError, match=r"No space left.* from the checkpoint of step"):
                train(config, folder)
        assert "a checkpoint cannot be written (No space left" in capsys.readouterr().err
        with pytest.raises(OSError, match=r"No space left on device: .*config\.toml"):
            train(config, folder)  # before any work
        fill.unlink()
        assert CheckpointStore(folder / "checkpoints").load_latest()[1]["training"]["step"] == 30
        assert_same_bits(whole, train(config, folder))
