import numpy as np
import pytest

from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.load_config import load_config
from keras_drill.workbench.training.checkpoints import CheckpointStore, TrainingState
from keras_drill.workbench.training.option_changes import option_changes, recorded_options
from keras_drill.workbench.training.run_folder import RunFolder, read_history, write_history
from tests.workbench.training.tiny import tiny_config
from tests.workbench.training.tiny_pairs import tiny_pairs_config


def test_a_folder_of_its_own_run_is_taken_again(tmp_path):
    folder, config = RunFolder(tmp_path / "a"), tiny_config(tmp_path)
    for _ in range(2):
        with folder.lock():
            folder.check(config)
            folder.write_config(config)
    assert folder.config() == config.resolved()


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


@pytest.mark.parametrize(
    "name, value", [("decoding.tokenize", "char"), ("decoding.score_lowercase", "true")]
)
def test_a_trained_run_may_be_scored_otherwise_unless_a_score_chose_its_epoch(name, value):
    config = load_config("small-translation-tied")
    recorded = recorded_options(config)
    (change,) = option_changes(config.replace({name: value}), recorded)
    assert (change.name, change.now, change.is_allowed) == (name, value, True)
    by_score = {"decoding.best_by": "bleu", "decoding.validation_sentences": 7}
    chosen = config.replace(by_score)
    (change,) = option_changes(chosen.replace({name: value}), recorded_options(chosen))
    assert not change.is_allowed and "best_by = 'bleu'" in str(change)


def edited(folder, before, after):
    text = folder.config_file.read_text()
    assert before in text
    folder.config_file.write_text(text.replace(before, after))
    return folder.config()


def saved_run(path, config):
    folder = RunFolder(path)
    with folder.lock():
        folder.write_config(config)
    state = {"options": recorded_options(config), "training": TrainingState().to_mapping()}
    CheckpointStore(folder.checkpoints).save(7, {}, state)
    return folder


def test_an_edited_file_is_held_against_the_checkpoints(tmp_path):
    folder = saved_run(tmp_path / "a", tiny_config(tmp_path, samples_prompts=["the"]))
    config = edited(folder, "learning_rate = 0.01", "learning_rate = 0.02")
    message = (
        r"config\.toml has other options than the checkpoints .*"
        r"\(optimizer\.learning_rate is 0\.01 there, not 0\.02\); write the values"
    )
    for check in (folder.check, folder.check_unedited):
        with pytest.raises(RunError, match=message):
            check(config)
    with pytest.raises(RunError, match=message):  # the same, with a change that is allowed
        folder.check(config.replace({"training.epochs": 9}))
    # Whoever names all options as they were goes on, whatever the file says.
    folder.check(tiny_config(tmp_path, samples_prompts=["the"]))
    with pytest.raises(RunError, match=r"learning_rate is 0\.01 there, not 0\.03"):
        folder.check(config.replace({"optimizer.learning_rate": 0.03}))
    edited(folder, "learning_rate = 0.02", "learning_rate = 0.01")
    for changes in (("epochs = 3", "epochs = 4"), ('["the"]', '["a", "the"]')):
        config = edited(folder, *changes)
        folder.check(config)
        folder.check_unedited(config)


def test_options_that_a_checkpoint_does_not_tell_are_taken(tmp_path):
    """Old versions recorded no options, and none that came later."""
    folder = saved_run(tmp_path / "a", tiny_config(tmp_path))
    options = recorded_options(tiny_config(tmp_path))
    del options["head"]["dropout"], options["senses"]
    options["head"]["gone"] = 3
    CheckpointStore(folder.checkpoints).save(8, {}, {"options": options})
    folder.check(tiny_config(tmp_path))
    with pytest.raises(RunError, match=r"head\.dropout is 0\.0 there, not 0\.5"):
        folder.check(tiny_config(tmp_path, head_dropout=0.5))
    CheckpointStore(folder.checkpoints).save(9, {}, {})
    folder.check(edited(folder, "learning_rate = 0.01", "learning_rate = 0.02"))


def test_a_run_of_another_task_is_refused(tmp_path):
    folder = saved_run(tmp_path / "a", tiny_config(tmp_path))
    with pytest.raises(RunError, match="task is 'language-model' there, not 'translation'"):
        folder.check(tiny_pairs_config(tmp_path))


@pytest.mark.parametrize("exists", [False, True])
def test_nothing_is_left_where_nothing_was_begun(exists, tmp_path):
    folder = RunFolder(tmp_path / "some" / "where" / "a")
    if exists:
        folder.path.mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), folder.lock():
            raise ZeroDivisionError
        assert list(tmp_path.rglob("*")) == (
            [folder.path.parents[1], folder.path.parent, folder.path] if exists else []
        )
    with pytest.raises(ZeroDivisionError), folder.lock():
        folder.write_config(tiny_config(tmp_path))
        raise ZeroDivisionError
    assert folder.config_file.exists()


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
    with folder.lock(), pytest.raises(RunError, match="holds files but no run"):
        folder.check(tiny_config(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


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
