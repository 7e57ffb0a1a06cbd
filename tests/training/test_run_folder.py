import numpy as np
import pytest

from keras_drill.tasks.errors import ConfigError, RunError
from keras_drill.training.checkpoints import CheckpointStore
from keras_drill.training.run_folder import RunFolder, read_history, write_history
from tests.training.tiny import tiny_config


def test_a_folder_of_its_own_run_is_taken_again(tmp_path):
    folder, config = RunFolder(tmp_path / "a"), tiny_config(tmp_path)
    for _ in range(2):
        with folder.lock():
            folder.check(config)
            folder.write_config(config)
    assert folder.config() == config


@pytest.mark.parametrize("may_change", [{"training_epochs": 99}, {"data_path": "elsewhere"}])
def test_some_options_may_change(tmp_path, may_change):
    folder = RunFolder(tmp_path / "a")
    with folder.lock():
        folder.write_config(tiny_config(tmp_path))
        folder.check(tiny_config(tmp_path).replace({}))
        options = {name.replace("_", ".", 1): value for name, value in may_change.items()}
        folder.check(tiny_config(tmp_path).replace(options))


def test_another_run_is_refused_and_left_alone(tmp_path):
    folder = RunFolder(tmp_path / "a")
    with folder.lock():
        folder.write_config(tiny_config(tmp_path))
        CheckpointStore(folder.checkpoints).save(1, {}, {})
        before = folder.config_file.read_bytes()
        with pytest.raises(RunError, match=r"head.kind is 'tied' there, not 'drill'"):
            folder.check(tiny_config(tmp_path, head_kind="drill"))
    assert folder.config_file.read_bytes() == before


def test_a_folder_in_which_nothing_was_trained_may_hold_another_run(tmp_path):
    folder = RunFolder(tmp_path / "a")
    with folder.lock():
        folder.write_config(tiny_config(tmp_path))
        vocabulary = folder.path / "vocabulary.txt"
        vocabulary.write_text("<unk>\n<eos>\n")
        folder.check(tiny_config(tmp_path, head_kind="drill", data_min_count=2))
    assert not vocabulary.exists()


def test_another_last_epoch_of_a_schedule_that_ends_there_is_refused(tmp_path):
    folder = RunFolder(tmp_path / "a")
    config = tiny_config(tmp_path, optimizer_schedule="linear")
    with folder.lock():
        folder.write_config(config)
        CheckpointStore(folder.checkpoints).save(1, {}, {})
        folder.check(config)
        with pytest.raises(RunError, match=r"training.epochs is 3 there, not 4, and optimizer"):
            folder.check(config.replace({"training.epochs": 4}))
        with pytest.raises(RunError, match=r"optimizer.decay_steps is 0 there, not 9"):
            folder.check(config.replace({"training.epochs": 4, "optimizer.decay_steps": 9}))


def test_an_emptied_configuration_is_no_other_one(tmp_path):
    folder = RunFolder(tmp_path / "a")
    with folder.lock():
        folder.write_config(tiny_config(tmp_path))
    folder.config_file.write_text("\n")
    with pytest.raises(ConfigError, match=r"config\.toml is empty"):
        folder.config()


def test_history_with_figures_that_came_later(tmp_path):
    path = tmp_path / "history.csv"
    write_history(path, [{"loss": 2.0}, {"loss": 1.5, "tokens": 7}])
    history = read_history(path)
    np.testing.assert_equal(history, {"loss": [2.0, 1.5], "tokens": [np.nan, 7.0]})
    path.write_text("")
    with pytest.raises(RunError, match=r"history\.csv is damaged"):
        read_history(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    folder = RunFolder(tmp_path)
    with folder.lock(), pytest.raises(RunError, match="holds files that are no run"):
        folder.check(tiny_config(tmp_path))


def test_two_trainings_in_one_folder_are_refused(tmp_path):
    with (
        RunFolder(tmp_path / "a").lock(),
        pytest.raises(RunError, match="another process is training"),
        RunFolder(tmp_path / "a").lock(),
    ):
        pass


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(RunError, match="must be a folder"), RunFolder(tmp_path / "a").lock():
        pass


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(RunError, match="is not the folder of a run"):
        RunFolder(tmp_path).config()
