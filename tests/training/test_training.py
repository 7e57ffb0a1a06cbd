import math

import keras
import numpy as np
import pytest

from keras_drill.callbacks import NonMonotonicAveraging, SenseReallocation
from keras_drill.senses.policies import IdleSensePolicy, RankingPolicy, ThresholdPolicy
from keras_drill.training.build_model import build_model
from keras_drill.training.build_sense_reallocation import build_sense_reallocation
from keras_drill.training.callbacks.checkpointing import Checkpointing
from keras_drill.training.history_file import read_history
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.prepared_text import PreparedText
from keras_drill.training.run_error import RunError
from keras_drill.training.run_folder import RunFolder
from keras_drill.training.train_run import train_run
from keras_drill.training.training import Training
from tests.training.tiny import tiny_config


class Killed(Exception):
    pass


def make_training(config, folder):
    text = PreparedText.prepare(config, folder)
    training = Training(config, folder, text)
    folder.write_config(config)
    text.vocabulary.save(folder.vocabulary_file)
    return training


def train(config, folder):
    folder = RunFolder(folder)
    with folder.lock():
        training = make_training(config, folder)
        if not training.finished:
            training.run()
    return training


def last_checkpoint(training):
    return training._store.load_latest()


def kill_at(monkeypatch, step):
    """Makes the training end without a word after a step, as a kill does."""
    original = Checkpointing.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        original(self, batch, logs)
        if self.state.step == step:
            raise Killed

    monkeypatch.setattr(Checkpointing, "on_train_batch_end", on_train_batch_end)


VARIANTS = {
    "adam": {"head_kind": "drill", "head_depth": 2, "head_dropout": 0.3},
    "nt-asgd": {
        "optimizer_kind": "nt-asgd",
        "optimizer_learning_rate": 5.0,
        "optimizer_nonmonotone_interval": 1,
        "optimizer_scale_with_length": True,
        "training_epochs": 5,
    },
    "senses": {
        "backbone_kind": "gru",
        "backbone_num_layers": 1,
        "head_kind": "kerbs",
        "senses_weighting": "usage",
        "senses_interval": 7,  # both kills and their checkpoints are inside an interval
        "senses_moved_embedding": "near",
    },
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_resumed_training_ends_with_the_same_bits(variant, corpus, tmp_path, monkeypatch):
    config = tiny_config(corpus, training_checkpoint_every=5, **VARIANTS[variant])
    whole = train(config, tmp_path / "whole")
    batches = whole.state.step // config.training.epochs
    # In the middle of an epoch, and right after the first batch of the last one.
    for step in (batches + 7, whole.state.step - batches + 1):
        with monkeypatch.context() as patch:
            kill_at(patch, step)
            with pytest.raises(Killed):
                train(config, tmp_path / "killed")
    resumed = train(config, tmp_path / "killed")
    arrays, state = last_checkpoint(whole)
    arrays_again, state_again = last_checkpoint(resumed)
    assert arrays.keys() == arrays_again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, arrays_again[name], err_msg=name)
    for one in (state, state_again):
        for epoch in one["training"]["history"]:
            del epoch["seconds"]
    assert state == state_again
    models = [keras.saving.load_model(t.folder.model_file, compile=False) for t in (whole, resumed)]
    for a, b in zip(models[0].variables, models[1].variables, strict=True):
        np.testing.assert_array_equal(a, b)
    if variant == "nt-asgd":
        assert whole._averaging.num_averaged > 0
    if variant == "senses":
        moves = [[record["moves"] for record in t._reallocation.history] for t in (whole, resumed)]
        assert moves[0] == moves[1] and len(moves[0]) == whole.state.step // 7 and sum(moves[0]) > 0
        assert sum(read_history(whole.folder.history_file)["sense_moves"]) == sum(moves[0])


@pytest.mark.parametrize("kind", ["softmax", "bilinear", "dual", "mos", "kerbs", "drill-kerbs"])
def test_every_head_is_trained(kind, corpus, tmp_path):
    config = tiny_config(
        corpus,
        head_kind=kind,
        training_epochs=1,
        backbone_num_layers=1,
        senses_weighting="usage",
        senses_variant="reference",
        senses_policy="idle",
    )
    training = train(config, tmp_path / kind)
    assert 1 < math.exp(training.state.best_loss) < 20


@pytest.mark.parametrize("kind", ["mos", "kerbs"])
def test_labels_need_not_be_tied(kind, corpus):
    batches = [np.ones((3, 11), "int32")] * 2
    config = tiny_config(
        corpus,
        head_kind=kind,
        head_tied=False,
        head_context_dim=13 if kind == "mos" else 0,
        backbone_output_dim=5,
        optimizer_learning_rate=0.1,
        senses_per_word=1.5,
    )
    model = build_model(config, 17, batches)
    assert model.head.embedding is None
    assert tuple(model.head.embeddings.shape) == ((17, 13) if kind == "mos" else (26, 5))
    losses = [model.train_on_batch(*batches)[0] for _ in range(5)]
    assert losses[-1] < losses[0]


def test_senses_stay_where_they_are_once_weights_are_averaged(corpus, tmp_path, monkeypatch):
    config = tiny_config(corpus, head_kind="kerbs")
    averaging = NonMonotonicAveraging()
    reallocation = build_sense_reallocation(config, RunFolder(tmp_path), averaging)
    seen = []
    monkeypatch.setattr(SenseReallocation, "on_train_batch_end", lambda self, *_: seen.append(self))
    reallocation.on_train_batch_end(0)
    averaging.averaging = True
    reallocation.on_train_batch_end(1)
    assert seen == [reallocation]


@pytest.mark.parametrize(
    "changes, policy",
    [
        ({"senses_policy": "threshold", "senses_threshold": -3.0}, ThresholdPolicy(-3.0)),
        ({"senses_policy": "ranking", "senses_ratio": 0.25}, RankingPolicy(0.25)),
        ({"senses_policy": "idle", "senses_idle_share": 0.2}, IdleSensePolicy(0.2)),
    ],
)
def test_options_of_the_reallocation(changes, policy, corpus, tmp_path):
    config = tiny_config(corpus, head_kind="kerbs", senses_interval=13, **changes)
    reallocation = build_sense_reallocation(config, RunFolder(tmp_path), None)
    assert (reallocation.interval, reallocation.momentum) == (13, 0.1)
    assert type(reallocation.policy) is type(policy)
    assert reallocation.policy.get_config() == policy.get_config()
    for changes in ({"senses.dynamic": False}, {"head.kind": "mos"}):
        assert build_sense_reallocation(config.replace(changes), RunFolder(tmp_path), None) is None


def test_a_run_is_judged_and_reported(corpus, tmp_path, capsys):
    config = tiny_config(
        corpus, backbone_kind="gru", training_epochs=1, samples_prompts=["the", "a"]
    )
    summary = train_run(config, RunFolder(tmp_path / "a"))
    assert 1 < summary.valid_perplexity < 20
    assert summary.output_parameters == 12  # a bias for each of ten words, <unk> and <eos>
    assert [sample.prompt for sample in summary.samples] == ["the", "a"]
    assert (tmp_path / "a" / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert "epoch 1/1  done" in capsys.readouterr().out


def test_the_best_model_is_the_one_that_was_evaluated(corpus, tmp_path):
    config = tiny_config(corpus, training_tensorboard=True)
    training = train(config, tmp_path / "a")
    history = read_history(training.folder.history_file)
    run = LoadedRun.load(training.folder)
    best = training.state.best_epoch
    assert best == 1 + int(np.argmin(history["val_perplexity"]))
    perplexity = run.perplexity(training.text.splits["valid"])
    np.testing.assert_allclose(perplexity, history["val_perplexity"][best - 1], rtol=1e-5)
    np.testing.assert_allclose(math.exp(training.state.best_loss), perplexity, rtol=1e-5)
    assert list(training.folder.logs.iterdir())


def test_a_finished_run_is_not_trained_again(corpus, tmp_path, capsys):
    config = tiny_config(corpus, training_epochs=1)
    train_run(config, RunFolder(tmp_path / "a"))
    capsys.readouterr()
    train_run(config, RunFolder(tmp_path / "a"))
    assert "already trained: 1 epochs" in capsys.readouterr().out
    longer = config.replace({"training.epochs": 2})
    train_run(longer, RunFolder(tmp_path / "a"))
    assert "resuming at epoch 2, batch 1" in capsys.readouterr().out


def test_early_stop(corpus, tmp_path):
    # Steps of no size: no epoch is better than the first.
    config = tiny_config(
        corpus, optimizer_learning_rate=0.0, training_patience=2, training_epochs=9
    )
    training = train(config, tmp_path / "a")
    assert training.state.stopped_early
    assert training.state.epoch == 3 and training.state.best_epoch == 1


def test_nan_stops_and_loses_nothing(corpus, tmp_path):
    good = tiny_config(corpus, training_epochs=1, training_checkpoint_every=4)
    folder = train(good, tmp_path / "a").folder
    model, checkpoints = folder.model_file.read_bytes(), sorted(folder.checkpoints.iterdir())
    training = make_training(good.replace({"training.epochs": 2}), folder)
    step = training.state.step
    for name, array in training._arrays.items():
        if name.startswith("model/") and array.dtype == np.float32 and array.ndim == 2:
            training._arrays[name] = array * np.float32(1e38)
    with pytest.raises(RunError, match=rf"at step {step + 1} \(epoch 2, batch 1\)"):
        training.run()
    assert folder.model_file.read_bytes() == model
    assert sorted(folder.checkpoints.iterdir()) == checkpoints


def test_another_text_is_refused(corpus, tmp_path):
    config = tiny_config(corpus, training_epochs=1)
    train(config, tmp_path / "a")
    other = tmp_path / "other"
    other.mkdir()
    for split in ("train", "valid"):
        (other / f"{split}.txt").write_text("the cat sees a dog .\n" * 30)
    with pytest.raises(RunError, match="the text is not the one"):
        train(tiny_config(other, training_epochs=2), tmp_path / "a")


@pytest.mark.parametrize("change", ["more", "others"])
def test_another_vocabulary_is_refused(change, corpus, tmp_path):
    config = tiny_config(corpus, training_epochs=1)
    folder = train(config, tmp_path / "a").folder
    words = folder.vocabulary_file.read_text().splitlines()
    folder.vocabulary_file.with_suffix(".counts").unlink()
    if change == "more":
        words.append("unicorn")
    else:
        words[-1] = "unicorn"
    folder.vocabulary_file.write_text("".join(f"{word}\n" for word in words))
    with pytest.raises(RunError, match="the vocabulary is not the one"):
        train(config.replace({"training.epochs": 2}), tmp_path / "a")
    if change == "more":
        with pytest.raises(RunError, match="is not the model's vocabulary"):
            LoadedRun.load(folder)
