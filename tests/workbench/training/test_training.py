import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.callbacks import NonMonotonicAveraging, SenseReallocation
from keras_drill.data import Corpus, StreamedText, Vocabulary, WhitespaceTokenizer
from keras_drill.decoding import GreedySampler
from keras_drill.senses.policies import IdleSensePolicy, RankingPolicy, ThresholdPolicy
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.language_model.run_vocabulary import LanguageModelVocabulary
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.build_sense_reallocation import build_sense_reallocation
from keras_drill.workbench.training.list_runs import list_runs
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder, read_history
from keras_drill.workbench.training.train_run import train_run
from tests.workbench.training.runs import (
    Killed,
    assert_same_bits,
    kill_at,
    make_training,
    train,
)
from tests.workbench.training.tiny import tiny_config

VARIANTS = {
    "adam": {
        "head_kind": "drill",
        "head_dropout": 0.3,
        "optimizer_schedule": "cosine",
        "optimizer_warmup_steps": 5,
        "training_average_checkpoints": 2,
    },
    "nt-asgd": {
        "optimizer_kind": "nt-asgd",
        "optimizer_learning_rate": 200.0,  # far too much: soon epochs are worse
        "optimizer_nonmonotone_interval": 1,
        "optimizer_scale_with_length": True,
        "training_epochs": 8,
    },
    "deep": {
        "backbone_num_layers": 2,
        "head_kind": "drill",
        "head_depth": 2,
        "head_dropout": 0.3,
        "optimizer_kind": "adam",
    },
    "validation decay": {
        "optimizer_kind": "sgd",
        "optimizer_learning_rate": 200.0,  # far too much: it is halved before the last kill
        "optimizer_validation_decay": 0.5,
        "training_epochs": 4,
    },
    "senses": {
        "backbone_kind": "gru",
        "head_kind": "kerbs",
        "senses_weighting": "usage",
        "senses_interval": 7,  # both kills and their checkpoints are inside an interval
        "senses_moved_embedding": "near",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    VARIANTS,
)
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
    assert_same_bits(whole, resumed)
    history = read_history(whole.folder.history_file)
    epochs = np.arange(1, 1 + whole.state.epoch)
    np.testing.assert_array_equal(history["tokens"], epochs * whole._batches.num_targets)
    assert all(0 < norm < 1e3 for norm in history["gradient_norm"])
    if variant == "adam":
        assert history["learning_rate"][0] > history["learning_rate"][1] > 0
        assert history["learning_rate"][-1] < 1e-8
    if variant == "validation decay":
        assert history["learning_rate"][0] > history["learning_rate"][-1] > 0
    if variant == "nt-asgd":
        assert whole._averaging.num_averaged > 0
    if variant == "senses":
        moves = [[record["moves"] for record in t._reallocation.history] for t in (whole, resumed)]
        assert moves[0] == moves[1] and len(moves[0]) == whole.state.step // 7 and sum(moves[0]) > 0
        assert sum(read_history(whole.folder.history_file)["sense_moves"]) == sum(moves[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        *("dual", "mos", "drill-kerbs"),
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("softmax", "bilinear", "kerbs")),
    ],
)
def test_every_head_is_trained(kind, corpus, tmp_path):
    config = tiny_config(
        corpus,
        head_kind=kind,
        training_epochs=1,
        senses_weighting="usage",
        senses_variant="reference",
        senses_policy="idle",
    )
    training = train(config, tmp_path / kind)
    assert 1 < math.exp(training.state.best_loss) < 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mos", "kerbs"])
def test_labels_need_not_be_tied(kind, corpus):
    batches = [np.ones((3, 11), "int32")] * 2
    config = tiny_config(
        corpus,
        head_kind=kind,
        head_tied=False,
        head_context_dim=13 if kind == "mos" else 0,
        backbone_output_dim=5,
        senses_per_word=1.5,
    )
    words = LanguageModelVocabulary(
        WhitespaceTokenizer(), Vocabulary(["<unk>", "<eos>", *"abcdefghijklmno"])
    )
    model = make_task(config).build_model(words)
    model.compile(keras.optimizers.Adam(0.1))
    assert model.head.embedding is None
    assert tuple(model.head.embeddings.shape) == ((17, 13) if kind == "mos" else (26, 5))
    losses = [model.train_on_batch(*batches) for _ in range(5)]
    assert losses[-1] < losses[0]


def test_senses_stay_where_they_are_once_weights_are_averaged(corpus, tmp_path, monkeypatch):
    config = tiny_config(corpus, head_kind="kerbs")
    averaging = NonMonotonicAveraging()
    reallocation = build_sense_reallocation(config, None, averaging)
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
    reallocation = build_sense_reallocation(config, None, None)
    assert (reallocation.interval, reallocation.momentum) == (13, 0.1)
    assert type(reallocation.policy) is type(policy)
    assert reallocation.policy.get_config() == policy.get_config()
    for changes in ({"senses.dynamic": False}, {"head.kind": "mos"}):
        assert build_sense_reallocation(config.replace(changes), None, None) is None


@pytest.mark.slow
def test_a_run_is_evaluated_and_reported(corpus, tmp_path, capsys):
    config = tiny_config(
        corpus,
        backbone_kind="gru",
        training_epochs=1,
        training_seed=3,
        samples_prompts=["the", "a"],
        samples_sampler="greedy",
    )
    summary = train_run(config, RunFolder(tmp_path / "a"))
    assert 1 < summary.valid_perplexity < 20
    assert summary.output_parameters == 12  # a bias for each of ten words, <unk> and <eos>
    run = LoadedRun.load(RunFolder(tmp_path / "a"))
    samples = run.task.evaluate(run.model, run.vocabulary, {}).samples
    assert [sample.prompt for sample in samples] == ["the", "a"]
    text_model = run.continuing_task.text_model(run.model, run.vocabulary, GreedySampler(), 0, 3)
    texts = text_model.continue_text(tf.constant(["the", "a"]))["texts"]
    shown = [sample.prompt + sample.continuation for sample in samples]
    assert shown == [text.decode() for text in texts.numpy()]  # "the cat" and not "thecat"
    assert summary.is_cut_off
    page = (tmp_path / "a" / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert '<th scope="row">seed</th><td><code>3</code></td>' in page
    terminal = capsys.readouterr().out
    assert "epoch 1/1  done" in terminal
    for split, lines in Corpus(corpus).splits.items():
        assert f"\n{split}: {lines.origin}\n" in terminal


@pytest.mark.slow
def test_the_best_model_is_the_one_that_was_evaluated(corpus, tmp_path):
    config = tiny_config(corpus, training_tensorboard=True)
    training = train(config, tmp_path / "a")
    history = read_history(training.folder.history_file)
    run = LoadedRun.load(training.folder)
    best = training.state.best_epoch
    assert best == 1 + int(np.argmin(history["val_perplexity"]))
    texts = {"valid": training.texts["valid"]}
    perplexity = run.task.evaluate(run.model, run.vocabulary, texts).perplexities["valid"]
    np.testing.assert_allclose(perplexity, history["val_perplexity"][best - 1], rtol=1e-5)
    np.testing.assert_allclose(math.exp(training.state.best_loss), perplexity, rtol=1e-5)
    assert list(training.folder.logs.iterdir())


@pytest.mark.slow
def test_early_stop_and_more_patience(corpus, tmp_path):
    # Steps of no size: no epoch is better than the first.
    config = tiny_config(
        corpus, optimizer_learning_rate=0.0, training_patience=1, training_epochs=9
    )
    training = train(config, tmp_path / "a")
    assert training.stopped_early
    assert training.state.epoch == 2 and training.state.best_epoch == 1
    assert [run.state for run in list_runs(tmp_path)] == ["stopped"]
    training = train(config.replace({"training.patience": 2}), tmp_path / "a")
    assert training.stopped_early and training.state.epoch == 3
    # A loss that stays as it is is not above an older one.
    changes = {"training.stopping": "non-monotone", "training.epochs": 4}
    training = train(config.replace(changes), tmp_path / "a")
    assert not training.stopped_early and training.state.epoch == 4


@pytest.mark.slow
def test_nt_asgd_averages_before_it_stops(corpus, tmp_path):
    config = tiny_config(
        corpus,
        backbone_num_layers=2,
        optimizer_kind="nt-asgd",
        optimizer_nonmonotone_interval=1,
        optimizer_learning_rate=200.0,  # far too much: without a mean no epoch is good
        training_patience=1,
        training_epochs=8,
    )
    training = train(config, tmp_path / "averaged")
    losses = read_history(training.folder.history_file)["val_loss"]
    assert training._averaging.num_averaged > 0  # which begins after an epoch that was worse
    assert min(losses[:3]) > 2 * min(losses)
    assert training.state.best_epoch == 1 + int(np.argmin(losses))
    no_steps = {"optimizer.learning_rate": 0.0, "training.epochs": 9}
    training = train(config.replace(no_steps), tmp_path / "stopped")
    assert training.stopped_early and training.state.epoch == 1 + 3
    assert {run.state for run in list_runs(tmp_path)} == {"finished", "stopped"}


@pytest.mark.parametrize(
    ("kind", "rate", "expected"), [("adam", 20.0, True), ("adam", 1.0, False), ("sgd", 20.0, False)]
)
def test_which_rate_was_left_at_that_of_sgd(kind, rate, expected, corpus):
    config = tiny_config(corpus, optimizer_kind=kind, optimizer_learning_rate=rate)
    assert config.optimizer.is_adam_with_rate_of_sgd == expected


@pytest.mark.slow
def test_a_rate_that_was_left_at_that_of_sgd_is_told(corpus, tmp_path, capsys, monkeypatch):
    config = tiny_config(corpus, optimizer_kind="adam", optimizer_learning_rate=20.0)
    kill_at(monkeypatch, 1)
    with pytest.raises(Killed):
        train_run(config, RunFolder(tmp_path / "run"))
    assert "optimizer.learning_rate = 20 is too large for Adam" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "patience", "expected"),
    [("nt-asgd", 0, 0), ("nt-asgd", 2, 7), ("nt-asgd", 11, 11), ("sgd", 2, 2)],
)
def test_patience_of_nt_asgd(kind, patience, expected, corpus):
    config = tiny_config(corpus, optimizer_kind=kind, training_patience=patience)
    assert config.patience == expected


@pytest.mark.slow
def test_an_infinite_loss_at_the_end_of_an_epoch_is_not_the_end(corpus, tmp_path, monkeypatch):
    config = tiny_config(corpus, training_epochs=1)
    fit = keras.Model.fit

    def to_infinity(*args, **kwargs):
        history = fit(*args, **kwargs)
        history.history["val_perplexity"][-1] = math.inf
        return history

    monkeypatch.setattr(keras.Model, "fit", to_infinity)
    with pytest.raises(RunError, match=r"perplexity became inf at step \d+ \(epoch 1"):
        train(config, tmp_path / "a")
    monkeypatch.undo()
    training = make_training(config, RunFolder(tmp_path / "a"))
    assert not training.finished and not training.folder.is_trained


@pytest.mark.slow
def test_a_text_on_the_disk_is_trained_on_like_one_in_memory(corpus, tmp_path, monkeypatch):
    """The same bits; a training goes on with the other."""
    monkeypatch.setattr("keras_drill.data.streamed_text._TOKENS_PER_RECORD", 29)
    config = tiny_config(
        corpus, training_deterministic=True, training_epochs=1, training_checkpoint_every=7
    )
    on_disk = config.replace({"data.on_disk": str(tmp_path / "cache")})
    whole = train(config, tmp_path / "whole")
    with monkeypatch.context() as killed, pytest.raises(Killed):
        kill_at(killed, 15)
        train(config, tmp_path / "torn")
    torn = train(on_disk, tmp_path / "torn")
    assert_same_bits(whole, torn, changed="data.on_disk")
    text = torn.texts["train"]
    assert isinstance(text, StreamedText)
    np.testing.assert_array_equal(torn.task.target_ids(text), whole.texts["train"])
    np.testing.assert_array_equal(torn.task.first_tokens(text, 37), whole.texts["train"][:37])
    (tmp_path / "examples" / "Split-train").mkdir(parents=True)
    with pytest.raises(RunError, match=r"data\.on_disk must not be set if data\.path is a folder"):
        torn.task.read_texts(torn.vocabulary, str(tmp_path / "examples"))
