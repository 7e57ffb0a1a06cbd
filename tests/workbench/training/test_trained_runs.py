"""What is done with a run that is trained: it goes on, is damaged, listed, or lends its weights."""

import json
import shutil

import numpy as np
import pytest

from keras_drill.data import StreamedText
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.task import Evaluation
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.list_runs import list_runs
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.snapshot import model_keys, take_snapshot
from keras_drill.workbench.training.train_run import train_run
from tests.workbench.training.runs import make_training, train
from tests.workbench.training.tiny import tiny_config


@pytest.fixture(scope="module")
def trained_once(corpus, tmp_path_factory):
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "trained")
    config = tiny_config(corpus, training_epochs=1, training_checkpoint_every=20)
    train_run(config, folder)
    return folder.path


@pytest.fixture
def trained(trained_once, tmp_path, capsys):
    """A folder of its own with a run of one epoch."""
    shutil.copytree(trained_once, tmp_path / "trained")
    capsys.readouterr()
    return RunFolder(tmp_path / "trained")


@pytest.mark.slow
def test_a_finished_run_is_not_trained_again(trained, capsys):
    config = trained.config()
    train_run(config, trained)
    assert "already trained: all 1 epochs are done" in capsys.readouterr().out
    longer = config.replace({"training.epochs": 2})
    train_run(longer, trained)
    assert "resuming at epoch 2, batch 1" in capsys.readouterr().out


@pytest.mark.slow
def test_an_edited_configuration_is_refused(trained):
    text = trained.config_file.read_text()
    trained.config_file.write_text(text.replace("learning_rate = 0.01", "learning_rate = 0.02"))
    with pytest.raises(RunError, match=r"learning_rate is 0\.01 there, not 0\.02"):
        train_run(trained.config().replace({"training.epochs": 2}), trained)
    with pytest.raises(RunError, match=r"config\.toml has other options than the checkpoints"):
        LoadedRun.load(trained)


@pytest.mark.slow
def test_options_that_may_change_are_recorded_from_where_they_hold(trained, capsys):
    epochs = {"option": "training.epochs", "epoch": 2, "batch": 1}
    for before, now in ((1, 3), (1, 2)):  # the first training makes no checkpoint
        config = trained.config().replace({"training.epochs": now})
        training = make_training(config, trained)
        assert training.state.changes == [{**epochs, "before": before, "now": now}]
    train_run(config, trained)
    assert "training.epochs changes from 1 to 2" in capsys.readouterr().out
    assert trained.changes() == training.state.changes
    assert LoadedRun.load(trained).summarize(Evaluation({})).changes == training.state.changes
    assert "Options that were changed when a run was resumed" in trained.report_file.read_text()
    assert make_training(config, trained).state.changes == training.state.changes


def test_nan_stops_and_loses_nothing(trained):
    folder, good = trained, trained.config()
    model, checkpoints = folder.model_file.read_bytes(), sorted(folder.checkpoints.iterdir())
    training = make_training(good.replace({"training.epochs": 2}), folder)
    training.prepare()
    step = training.state.step
    for name, array in training._arrays.items():
        if name.startswith("model/") and array.dtype == np.float32 and array.ndim == 2:
            training._arrays[name] = array * np.float32(1e38)
    with pytest.raises(RunError, match=rf"at step {step + 1} \(epoch 2, batch 1\)"):
        training.run()
    assert folder.model_file.read_bytes() == model
    assert sorted(folder.checkpoints.iterdir()) == checkpoints


def test_another_text_is_refused(trained, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for split in ("train", "valid"):
        (other / f"{split}.txt").write_text("the cat sees a dog .\n" * 30)
    with pytest.raises(RunError, match="the text differs from the text"):
        train(trained.config().replace({"data.path": str(other)}), trained.path)


@pytest.mark.parametrize("change", ["more", "others"])
def test_another_vocabulary_is_refused(change, trained):
    folder, config = trained, trained.config()
    vocabulary = folder.path / "vocabulary.txt"
    words = vocabulary.read_text().splitlines()
    vocabulary.with_suffix(".counts").unlink()
    if change == "more":
        words.append("unicorn")
    else:
        words[-1] = "unicorn"
    vocabulary.write_text("".join(f"{word}\n" for word in words))
    with pytest.raises(RunError, match="the vocabulary differs from the"):
        train(config.replace({"training.epochs": 2}), folder.path)
    if change == "more":
        with pytest.raises(RunError, match="must be the vocabulary of"):
            LoadedRun.load(folder)


@pytest.mark.slow
def test_training_goes_on_from_the_checkpoint_before_a_damaged_one(trained, capsys):
    config = trained.config().replace({"training.epochs": 2})
    steps = CheckpointStore(trained.checkpoints).steps()
    (trained.checkpoints / f"step-{steps[-1]:08d}" / "arrays.npz").write_bytes(b"PK")
    training = train(config, trained.path)
    assert (
        training.finished and f"using the checkpoint of step {steps[0]}" in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["model.keras", "history.csv", "config.toml"])
def test_a_damaged_run_is_one_message(trained, name):
    content = bytearray((trained.path / name).read_bytes())
    content[len(content) // 2 :] = b""
    (trained.path / name).write_bytes(content)
    if name == "model.keras":
        with pytest.raises(RunError, match=r"model\.keras cannot be loaded"):
            LoadedRun.load(trained)
    (trained.path / name).write_text("")
    if name == "model.keras":
        assert [run.state for run in list_runs(trained.path)] == ["damaged"]
    if name == "config.toml":
        with pytest.raises(ConfigError, match=r"config\.toml is empty"):
            LoadedRun.load(trained)
        assert [run.state for run in list_runs(trained.path)] == ["damaged"]
    if name == "history.csv":
        with pytest.raises(RunError, match=r"history\.csv is damaged"):
            LoadedRun.load(trained).summarize(Evaluation({}))


@pytest.mark.slow
def test_the_mean_of_checkpoints_is_evaluated_where_it_is_better(trained):
    training = make_training(trained.config().replace({"training.average_checkpoints": 2}), trained)
    training.prepare()
    training.state.best_loss = 0.0
    training.average()
    assert not trained.averaged_model_file.exists()
    training.state.best_loss = 99.0
    training.average()
    steps = CheckpointStore(trained.checkpoints).steps()
    arrays = [CheckpointStore(trained.checkpoints).load(step)[0] for step in steps]
    loaded = LoadedRun.load(trained).model.variables
    weights = dict(zip(model_keys(training.model), loaded, strict=True))
    for key in ("backbone/recurrent/kernel", "backbone/embedding/embeddings", "head/bias"):
        mean = np.mean([one[f"model/{key}"] for one in arrays], axis=0)
        np.testing.assert_allclose(weights[key], mean, rtol=1e-6)


def test_a_chosen_checkpoint(trained):
    step = CheckpointStore(trained.checkpoints).steps()[-1]
    chosen = LoadedRun.load(trained, checkpoint=step)
    best, last = LoadedRun.load(trained), LoadedRun.load(trained, checkpoint="last")
    np.testing.assert_array_equal(last.model.weights[0], chosen.model.weights[0])
    for a, b in zip(chosen.model.trainable_weights, best.model.trainable_weights, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=a.path)
    with pytest.raises(RunError, match="no checkpoint of step 1; steps with a checkpoint: "):
        LoadedRun.load(trained, checkpoint=1)


def test_checkpoints_of_old_versions_resume(trained):
    """Those number their variables, have no checksums, and know when a training was stopped."""
    store = CheckpointStore(trained.checkpoints)
    arrays, state = store.load_latest()
    path = trained.checkpoints / f"step-{store.steps()[-1]:08d}"
    for file in ("checksums.json", "arrays.npz"):
        (path / file).unlink()
    places = {"model": 0, "optimizer": 0, "metrics": 0}
    numbered = {}
    for name, array in arrays.items():
        group = name.split("/")[0]
        if group in places:  # the gradient's norm was not recorded
            numbered[f"{group}/{places[group]}"] = array
            places[group] += 1
    np.savez(path / "arrays.npz", **numbered)
    (path / "state.json").write_text(
        json.dumps({**state, "training": {**state["training"], "stopped_early": False}})
    )
    training = make_training(trained.config().replace({"training.epochs": 2}), trained)
    training.prepare()
    training._restore()
    for name, array in take_snapshot(training.model, training.workers).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_weights_of_another_run(trained, tmp_path, corpus, capsys, is_on_disk):
    other = tmp_path / "other"
    other.mkdir()
    for split in ("train", "valid"):
        text = (corpus / f"{split}.txt").read_text().replace("cat", "fox")
        (other / f"{split}.txt").write_text(text)
    config = tiny_config(
        other,
        training_start_from=str(trained.path),
        head_kind="drill",
        data_on_disk=str(tmp_path / "cache") if is_on_disk else "",
    )
    training = make_training(config, RunFolder(tmp_path / "new"))
    training.prepare()
    assert isinstance(training.texts["train"], StreamedText) == is_on_disk
    said = capsys.readouterr().out
    assert (
        "11 of the 12 words are in its vocabulary" in said and "not copied: head/residual" in said
    )
    source = LoadedRun.load(trained)
    for name in ("the", "fox"):
        place = training.vocabulary.tokens.index(name)
        row = np.asarray(training.model.backbone.embedding.embeddings)[place]
        if name == "fox":
            assert not np.isclose(source.model.backbone.embedding.embeddings, row).all(1).any()
        else:
            before = source.vocabulary.tokens.index(name)
            np.testing.assert_array_equal(source.model.backbone.embedding.embeddings[before], row)
    kernels = [model.backbone.weights[1] for model in (source.model, training.model)]
    np.testing.assert_array_equal(*kernels)
    with pytest.raises(RunError, match=r"no weights of .* fit this model"):
        wrong = config.replace({"backbone.embedding_dim": 13, "backbone.units": 3})
        make_training(wrong, RunFolder(tmp_path / "wrong")).prepare()


def test_a_list_of_runs(trained, tmp_path):
    (tmp_path / "empty").mkdir()
    RunFolder(tmp_path / "empty").write_config(trained.config())
    with RunFolder(trained.path).lock():
        assert [run.state for run in list_runs(tmp_path)] == ["new", "training"]
    trained.write_config(trained.config().replace({"training.epochs": 2}))
    new, run = list_runs(tmp_path)
    assert (new.state, run.state, run.name) == ("new", "interrupted", "trained")
    assert (run.epochs, run.max_epochs, run.output_layer) == (1, 2, "tied softmax")
    assert 1 < run.best_valid < 20 and 1 < run.test < 20
