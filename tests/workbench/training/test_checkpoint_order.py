"""In which order checkpoints are written and waited for, and when patience ends."""

import os
import shutil
import threading

import numpy as np
import pytest

from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.training.checkpoint_writer import CheckpointWriter
from keras_drill.workbench.training.checkpoints import CheckpointStore, TrainingState


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files have no names")
def test_all_is_on_the_disk_before_it_gets_its_name_and_the_name_is_after(tmp_path, monkeypatch):
    store = CheckpointStore(tmp_path)
    store.save(1, {}, {})
    done = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(descriptor):
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def watched_rename(source, target):
        done.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    store.save(2, {"a": np.zeros(3)}, {})
    assert done == ["arrays.npz", "state.json", "checksums.json", "rename", tmp_path.name]


@pytest.mark.parametrize(
    ("patience", "epoch", "expected"),
    [(0, 99, False), (3, 6, False), (3, 7, True), (3, 8, True), (1, 5, True), (1, 4, False)],
)
def test_patience_ends_after_so_many_epochs(patience, epoch, expected):
    assert TrainingState(epoch=epoch, best_epoch=4).has_waited(patience) == expected


def original_stops_at(losses, interval):
    """The epoch, from 1, at which awd-lstm-lm's finetune.py is done; `None`: it goes on."""
    best_val_loss = []
    for loss in losses:
        if len(best_val_loss) > interval and loss > min(best_val_loss[:-interval]):
            return len(best_val_loss) + 1
        best_val_loss.append(loss)
    return None


@pytest.mark.parametrize("interval", [1, 2, 5])
def test_the_criterion_of_the_fine_tuning_stage(interval):
    options = {"training.stopping": "non-monotone", "training.patience": interval}
    config = LanguageModelConfig().replace({**options, "optimizer.nonmonotone_interval": 0})
    stopped = []
    for seed in range(29):
        losses = np.random.default_rng(seed).normal(size=13) - 0.7 * np.arange(13)
        found = None
        for epoch in range(1, len(losses) + 1):
            state = TrainingState(epoch=epoch, losses=losses[:epoch].tolist())
            if found is None and state.has_stopped_improving(config):
                found = epoch
        assert found == original_stops_at(losses, interval)
        stopped.append(found)
    assert len(set(stopped)) > 2
    never = config.replace({"training.patience": 0})
    assert not TrainingState(losses=[1.0, 2.0, 3.0]).has_stopped_improving(never)


def test_the_criterion_is_not_there_twice():
    with pytest.raises(
        ConfigError,
        match=r"because averaging begins by the non-monotone criterion\. Received: 'non",
    ):
        LanguageModelConfig().replace({"training.stopping": "non-monotone"})


def test_means_are_taken_in_float64(tmp_path):
    store = CheckpointStore(tmp_path, keep=3)
    for step, value in enumerate((1.0, 1.0, 2.0**24), start=1):
        store.save(step, {"a": np.array([value], "float32")}, {})
    expected = np.float32((2.0**24 + 2) / 3)  # in float32 the sum would be 2^24
    np.testing.assert_array_equal(store.mean(3, {"a"})["a"], [expected])


def test_the_state_that_can_be_read_is_the_last_one(tmp_path):
    store = CheckpointStore(tmp_path)
    assert store.last_state() == {} and store.progress() is None
    for step in (2, 3):
        store.save(step, {}, {"training": TrainingState(step=step).to_mapping()})
    assert store.last_state()["training"]["step"] == store.progress().step == 3
    (tmp_path / "step-00000003" / "state.json").write_text("{")
    assert store.last_state()["training"]["step"] == 2


def test_a_folder_that_was_removed_does_not_come_back(tmp_path):
    with pytest.raises(FileNotFoundError):
        CheckpointStore(tmp_path / "run" / "checkpoints").save(1, {}, {})
    assert not (tmp_path / "run").exists()


def test_what_was_found_damaged_goes_with_the_next_checkpoint(tmp_path, capsys):
    store = CheckpointStore(tmp_path, keep=5)
    for step in (1, 2):
        store.save(step, {"a": np.full(3, step)}, {})
    (tmp_path / "step-00000002" / "state.json").write_text("{")
    store.load_latest()
    assert store.steps() == [1] and (tmp_path / "step-00000002").exists()
    store.save(3, {"a": np.full(3, 3)}, {})
    assert store.steps() == [1, 3] and not (tmp_path / "step-00000002").exists()
    store.save(2, {"a": np.full(3, 2)}, {})
    assert store.steps() == [1, 2, 3]


def test_what_was_found_damaged_may_be_gone_by_then(tmp_path, capsys):
    store = CheckpointStore(tmp_path)
    for step in (1, 2):
        store.save(step, {}, {})
    (tmp_path / "step-00000002" / "state.json").write_text("{")
    store.load_latest()
    shutil.rmtree(tmp_path / "step-00000002")
    store.save(3, {}, {})
    assert store.steps() == [1, 3]


class SlowStore(CheckpointStore):
    """A store whose disk is as slow as it is told to be, and may be full."""

    def __init__(self, folder):
        super().__init__(folder, keep=9)
        self.may_write = threading.Event()
        self.error = None

    def save(self, step, arrays, state):
        assert self.may_write.wait(60)
        if self.error is not None:
            raise self.error
        super().save(step, arrays, state)


def test_one_checkpoint_is_written_at_a_time_and_the_end_waits(tmp_path):
    store = SlowStore(tmp_path)
    with CheckpointWriter(store) as writer:
        writer.poll()  # nothing is under way
        writer.begin(1, {}, {})
        writer.poll()  # not done yet: nothing to say, and no waiting
        assert store.steps() == []
        threading.Timer(0.05, store.may_write.set).start()
        writer.begin(2, {}, {})
        assert 1 in store.steps()
    assert store.steps() == [1, 2]


def test_a_failure_is_said_once_and_forgotten_when_the_next_one_begins(tmp_path, capsys):
    store = SlowStore(tmp_path)
    store.may_write.set()
    with CheckpointWriter(store) as writer:
        store.error = OSError(28, "No space left on device")
        writer.begin(1, {}, {})
        writer.finish()
        writer.finish()
        said = capsys.readouterr().err
        assert said.count("warning") == 1 and "(No space left on device); there is none" in said
        store.error = None
        writer.begin(2, {}, {})
        writer.require()
        store.error = ZeroDivisionError("no disk at all")
        writer.begin(3, {}, {})
        with pytest.raises(ZeroDivisionError):
            writer.finish()
        store.error = None
        writer.begin(4, {}, {})
        writer.require()
    assert store.steps() == [2, 4]
