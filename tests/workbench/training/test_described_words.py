"""Runs whose labels are made of descriptions of words."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.decoding import GreedySampler
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.training.evaluate_examples import evaluate_examples
from keras_drill.workbench.training.export_run import export_run
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import train_run
from tests.pipelines.corpora import tiny_task
from tests.workbench.training.runs import Killed, assert_same_bits, kill_at, train
from tests.workbench.training.tiny import tiny_config
from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs

WORDS = ["the", "a", "old", "cat", "dog", "bird", "sees", "hears", "follows", ".", "fish"]


@pytest.fixture
def vectors(tmp_path):
    random = np.random.default_rng(7)
    lines = (f"{word} {' '.join(map(str, random.normal(size=13)))}\n" for word in WORDS)
    path = tmp_path / "words.vec"
    path.write_text("".join(lines))
    return path


@pytest.mark.slow
def test_a_run_needs_what_described_its_words_once(corpus, vectors, tmp_path, monkeypatch):
    config = tiny_config(
        corpus,
        head_kind="described",
        head_descriptions=str(vectors),
        head_units=11,
        head_dropout=0.3,
        head_embedding_dropout=0.3,
        training_checkpoint_every=5,
        training_epochs=2,
    )
    whole = train(config, tmp_path / "whole")
    with monkeypatch.context() as patch:
        kill_at(patch, 17)
        with pytest.raises(Killed):
            train(config, tmp_path / "torn")
    vectors.unlink()
    assert_same_bits(whole, train(config, tmp_path / "torn"))

    loaded = LoadedRun.load(whole.folder, checkpoint="last")
    described = loaded.vocabulary.descriptions
    assert described.shape == (len(loaded.vocabulary.tokens), 13)
    encoder = loaded.model.head.label_encoder
    np.testing.assert_array_equal(encoder.descriptions, described)
    unknown = loaded.vocabulary.tokens.index("<eos>")
    assert not described[unknown].any() and described.any(axis=1).sum() == 10


@pytest.mark.slow
@pytest.mark.parametrize("residual", [True, False])
def test_described_words_are_trained_evaluated_and_exported(residual, corpus, vectors, tmp_path):
    config = tiny_config(
        corpus,
        head_kind="described",
        head_descriptions=str(vectors),
        head_residual_to_input=residual,
        training_epochs=1,
        samples_prompts=["the"],
    )
    summary = train_run(config, RunFolder(tmp_path / "run"))
    assert summary.test_perplexity < 17
    run = LoadedRun.load(RunFolder(tmp_path / "run"))
    head = run.model.head
    assert (head.embedding is not None) == residual
    ids = np.array([[1, 2, 3]] * 3)
    version = run.continuing_task.export(
        run.model, run.vocabulary, tmp_path / "served", 1, GreedySampler(), seed=0, max_tokens=3
    )
    assert (version / "saved_model.pb").exists()
    run.model.backbone.reset_state()
    expected = keras.ops.convert_to_numpy(run.model(ids))
    (tmp_path / "run" / "descriptions.npy").unlink()  # the model has them
    again = LoadedRun.load(RunFolder(tmp_path / "run"))
    again.model.backbone.reset_state()
    np.testing.assert_array_equal(expected, again.model(ids))
    with pytest.raises(RunError, match=r"restore the file descriptions.npy"):
        LoadedRun.load(RunFolder(tmp_path / "run"), checkpoint="last")


@pytest.mark.slow
def test_new_words_have_labels_before_they_are_trained(corpus, vectors, tmp_path):
    options = {"head_kind": "described", "head_descriptions": str(vectors), "training_epochs": 1}
    old = train(tiny_config(corpus, **options), tmp_path / "old").model
    more = shutil.copytree(corpus, tmp_path / "more")
    with open(more / "train.txt", "a") as file:
        file.write("the fish sees a fish .\n" * 5)
    config = tiny_config(more, training_start_from=str(tmp_path / "old"), **options)
    new = train(config.replace({"optimizer.learning_rate": 1e-30}), tmp_path / "new")
    tokens = list(new.vocabulary.tokens)
    labels = keras.ops.convert_to_numpy(new.model.head.encoded_labels())
    encoder = new.model.head.label_encoder
    fish = keras.ops.convert_to_numpy(encoder.label_network(encoder.descriptions))
    begun = labels[tokens.index("fish")] - fish[tokens.index("fish")]
    assert np.abs(begun).max() <= 0.1 + 1e-6  # an embedding that nothing has trained
    old_words = LoadedRun.load(RunFolder(tmp_path / "old")).vocabulary.tokens
    places = [tokens.index(word) for word in old_words]
    np.testing.assert_allclose(labels[places], old.head.encoded_labels(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_words_of_targets_are_described(shared, vectors, tmp_path):
    config = tiny_pairs_config(
        write_pairs(tmp_path / "pairs"),
        head_kind="described",
        head_descriptions=str(vectors),
        data_tokenizer="whitespace",
        data_shared_vocabulary=shared,
        training_epochs=1,
    )
    training = train(config, tmp_path / "run")
    described = (len(training.vocabulary.target.vocabulary), 13)
    assert training.vocabulary.descriptions.shape == described
    assert training.model.head.label_encoder.descriptions.shape == described


@pytest.mark.slow
def test_a_run_begun_anew_with_other_options_describes_words_anew(corpus, vectors, tmp_path):
    config = tiny_config(
        corpus, head_kind="described", head_descriptions=str(vectors), training_epochs=1
    )
    folder = tmp_path / "run"
    folder.mkdir()
    RunFolder(folder).write_config(config.replace({"head.descriptions": "others.vec"}))
    (folder / "vocabulary.txt").write_text("of the run before\n")
    np.save(folder / "descriptions.npy", np.zeros((1, 16), "float32"))
    train_run(config, RunFolder(folder))
    assert LoadedRun.load(RunFolder(folder)).vocabulary.descriptions.shape[1] == 13


@pytest.mark.slow
@pytest.mark.parametrize("task", ["language-model", "dialog", "autoencoder"])
def test_other_tasks_and_exports_in_eight_bits(task, vectors, tmp_path):
    config = tiny_task(
        task,
        tmp_path / "data",
        head_kind="described",
        head_descriptions=str(vectors),
        training_epochs=1,
    )
    folder = RunFolder(tmp_path / "run")
    train_run(config, folder)
    run = LoadedRun.load(folder)
    assert 0 < run.vocabulary.descriptions.any(axis=1).sum() < len(run.vocabulary.tokens)
    test = run.task.read_columns(config.data.path)["test"]

    def perplexity(weights):
        version = export_run(run, tmp_path / weights, version=1, weights=weights)
        return evaluate_examples(
            tf.saved_model.load(version).signatures["examples"], test
        ).perplexity

    exact, narrow = perplexity("float32"), perplexity("int8")
    assert exact != narrow
    assert narrow == pytest.approx(exact, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["mixed_float16", "mixed_bfloat16"])
def test_described_words_in_half_precision(precision, corpus, vectors, tmp_path):
    config = tiny_config(corpus, head_kind="described", head_descriptions=str(vectors))
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        training = train(config.replace({"training.precision": precision}), tmp_path / "run")
    finally:
        keras.config.set_dtype_policy(before)
    assert 0 < training.state.best_loss < np.log(11)
    assert training.model.head.label_encoder.descriptions.dtype == "float32"


def test_contradictions_are_refused():
    config = tiny_config("", head_kind="described")
    with pytest.raises(ConfigError, match=r"head.embedding_dropout must be 0 .* Received: 0.5"):
        config.replace({"head.residual_to_input": False, "head.embedding_dropout": 0.5})
    with pytest.raises(ConfigError, match=r"backbone.output_dim must be 0 or"):
        config.replace({"backbone.output_dim": 11})
