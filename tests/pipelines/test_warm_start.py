"""A new day's data trains on from the blessed model: which one, its words, its rows, its senses."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import Vocabulary
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.transfer_weights import transfer_weights
from pipelines.command_line import main
from pipelines.components.example_gen import ExampleGen
from pipelines.components.trainer import Trainer
from pipelines.components.transform import Transform
from pipelines.components.verdict import Verdict
from pipelines.components.warm_start import WARM_START, blessed_before
from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.component import Component
from pipelines.engine.run_pipeline import run_pipeline
from tests.pipelines.corpora import tiny_task
from tests.workbench.training.tiny import tiny_config, write_corpus


@dataclasses.dataclass(frozen=True)
class Text:
    text: str


class Examples(Component):
    name, version, writes = "ExampleGen", 1, "examples"

    def run(self, inputs, output, progress):
        (output / "text.txt").write_text(self.options.text)
        return {}


class Model(Component):
    """A trainer whose model is the text that it read, after that of the model it began with."""

    name, version, reads, writes = "Trainer", 1, ("examples",), "model"

    def resolve(self, store, made):
        return blessed_before(store, made)

    def run(self, inputs, output, progress):
        texts = [inputs[name] / "text.txt" for name in (WARM_START, "examples") if name in inputs]
        (output / "text.txt").write_text(" ".join(path.read_text() for path in texts))
        return {}


class Evaluate(Component):
    name, version, reads, writes = "Evaluator", 1, ("model",), "verdict"

    def run(self, inputs, output, progress):
        text = (inputs["model"] / "text.txt").read_text()
        Verdict("bad" not in text, ["it is so"]).save(output)
        return {}


def test_the_newest_blessed_model_from_before_the_examples_is_taken(tmp_path):
    def train(text):
        options = Text(text)
        pipeline = [Examples(options), Model(options), Evaluate(options)]
        execution = run_pipeline(pipeline, ArtifactStore(tmp_path))
        states = [step.state for step in execution.steps]
        return (tmp_path / execution.steps[1].artifact / "text.txt").read_text(), states

    assert train("one")[0] == "one"
    assert train("two")[0] == "one two"
    assert train("bad")[0] == "one two bad"
    assert train("four")[0] == "one two four"  # not from one that was refused
    for text, model in (("two", "one two"), ("one", "one"), ("four", "one two four")):
        assert train(text) == (model, ["kept"] * 3)  # the same command finds its own model


def other_corpus(corpus, folder):
    """The corpus with a word that is new, without one of those that were there."""
    folder.mkdir()
    for split in ("train", "valid"):
        text = (corpus / f"{split}.txt").read_text().replace("old", "young")
        (folder / f"{split}.txt").write_text(text.replace("a dog", "a fox", 9))
    return folder


def built_run(folder, corpus, **options):
    """A run with new weights, as it would be loaded, and its words."""
    config = tiny_config(corpus, data_tokenizer="whitespace", **options)
    task = make_task(config)
    words = task.make_vocabulary(folder)
    return LoadedRun(RunFolder(folder), config, task, task.build_model(words), words)


def grown_model(source, corpus):
    """A model with the words of a run and those of another corpus, and its weights."""
    words = source.task.grow_words(
        source.vocabulary, source.task.read_columns(str(corpus))["train"]
    )
    task = make_task(source.config.replace({"training.seed": 7}))
    model = task.build_model(words)
    transfer_weights(model, task, words, source)
    return model


def test_words_keep_their_ids_and_counts_are_added(tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    config = tiny_config(corpus, data_tokenizer="whitespace")
    task = make_task(config)
    known = task.make_vocabulary(tmp_path / "none")
    other = other_corpus(corpus, tmp_path / "other")
    columns = task.read_columns(str(other))["train"]
    grown = task.grow_words(known, columns)
    assert grown.tokens[: len(known.tokens)] == known.tokens
    assert set(grown.tokens[len(known.tokens) :]) == {"young", "fox"}
    found = task.learn_words(columns)
    counts = [dict(zip(each.tokens, each.counts, strict=True)) for each in (known, found, grown)]
    for word in grown.tokens:
        assert counts[2][word] == counts[0].get(word, 0) + counts[1].get(word, 0)
    most = {"data.max_vocabulary": len(known.tokens) + 1}
    capped = make_task(config.replace(most)).grow_words(known, columns)
    assert capped.tokens == grown.tokens[:-1]
    pairs = make_task(tiny_task("dialog", tmp_path / "dialog"))
    assert pairs.grow_words(known, columns) is known


def test_rows_of_words_stay(tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    source = built_run(tmp_path / "run", corpus)
    model = grown_model(source, other_corpus(corpus, tmp_path / "other"))
    before, after = (
        np.asarray(each.backbone.embedding.embeddings) for each in (source.model, model)
    )
    assert len(after) == len(before) + 2
    np.testing.assert_array_equal(after[: len(before)], before)


@pytest.mark.parametrize("tied", [True, False])
def test_senses_of_words_stay(tied, tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    source = built_run(
        tmp_path / "run", corpus, head_kind="kerbs", head_tied=tied, senses_per_word=2.0,
        senses_weighting="usage",
    )  # fmt: skip
    theirs = source.model.head.composition.allocation
    moved = np.asarray(theirs.sense_to_word).copy()
    moved[-3:] = 0, 1, 0  # senses of others have moved to the first words
    theirs.assign(moved)
    theirs.usage.assign(np.random.default_rng(5).random(len(moved)))
    model = grown_model(source, other_corpus(corpus, tmp_path / "other"))
    mine = model.head.composition.allocation
    after = np.asarray(mine.sense_to_word)
    np.testing.assert_array_equal(after[: len(moved)], moved)  # old words keep their ids
    new = set(range(theirs.vocabulary_size, mine.vocabulary_size))
    assert set(after[len(moved) :].tolist()) == new and len(new) == 2
    np.testing.assert_array_equal(
        np.asarray(mine.senses_of_word)[: theirs.vocabulary_size], theirs.senses_of_word
    )
    np.testing.assert_array_equal(np.asarray(mine.usage)[: len(moved)], theirs.usage)
    by_sense = 0
    heads = (source.model.head, model.head)
    for old, weight in zip(*(head.trainable_weights for head in heads), strict=True):
        if weight.shape[:1] == (mine.num_senses,):
            by_sense += 1
            np.testing.assert_array_equal(np.asarray(weight)[: len(moved)], np.asarray(old))
    assert by_sense >= 2


def test_only_a_warm_start_asks_for_a_model_from_before(tmp_path, monkeypatch):
    found = {WARM_START: "the model"}
    for module in ("trainer", "transform"):
        monkeypatch.setattr(f"pipelines.components.{module}.blessed_before", lambda *given: found)
    config = tiny_task("language-model", tmp_path / "text")
    for component in (Transform(make_task(config)), Trainer(config)):
        assert component.resolve(None, {}) == {}
        component.warm_start = True
        assert component.resolve(None, {}) == found


def test_facts_of_a_training_have_three_digits(tmp_path, monkeypatch):
    results = {"best_epoch": 3, "valid_perplexity": 12.34567, "scores": {"BLEU": 7.65432}}

    def train(config, folder):
        folder.path.mkdir(parents=True)
        folder.results_file.write_text(json.dumps(results))
        folder.lock_file.touch()

    monkeypatch.setattr("pipelines.components.trainer.train_run", train)
    for name in ("export_run", "LoadedRun.load"):
        monkeypatch.setattr(f"pipelines.components.trainer.{name}", lambda *given, **options: None)
    trainer = Trainer(tiny_task("language-model", tmp_path / "text"))
    inputs = {"transformed": tmp_path, "examples": tmp_path}
    facts = trainer.run(inputs, tmp_path / "model", lambda *told: None)
    assert facts == {"best epoch": 3, "valid perplexity": 12.346, "BLEU": 7.654}


def test_transform_keeps_the_words_of_the_model_it_is_given(tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    config = tiny_config(corpus, data_tokenizer="whitespace")
    task = make_task(config)
    known = task.make_vocabulary(tmp_path / "none")
    (tmp_path / "model" / "run").mkdir(parents=True)
    known.save(tmp_path / "model" / "run")
    other = other_corpus(corpus, tmp_path / "other")
    examples, output = tmp_path / "examples", tmp_path / "transformed"
    for folder in (examples, output):
        folder.mkdir()
    ExampleGen(task, str(other)).run({}, examples, lambda *told: None)
    inputs = {"examples": examples, WARM_START: tmp_path / "model"}
    facts = Transform(task, warm_start=True).run(inputs, output, lambda *told: None)
    assert facts["new words"] == 2
    tokens = Vocabulary.load(output / "vocabulary.txt").tokens
    assert tokens[: len(known.tokens)] == known.tokens
    there = make_task(config.replace({"data.path": str(output)}))
    words = there.make_vocabulary(tmp_path / "none")
    texts = there.read_texts(words)
    again = make_task(config.replace({"data.path": str(other)})).read_texts(words)
    assert there.fingerprint(texts) == there.fingerprint(again)


@pytest.mark.slow
def test_a_new_span_trains_on(tmp_path, capsys):
    """With senses and their examples, and with what a search found."""
    corpus = write_corpus(tmp_path / "day-1")
    other_corpus(corpus, tmp_path / "day-2")
    config = tiny_config(
        corpus,
        data_tokenizer="whitespace",
        head_kind="drill-kerbs",
        senses_per_word=2.0,
        senses_weighting="usage",
        training_epochs=4,
        optimizer_learning_rate=0.01,
    )
    (tmp_path / "tiny.toml").write_text(config.to_toml())
    words = [tmp_path / "tiny.toml", "--data", f"{tmp_path}/day-{{SPAN}}", "--folder",
             tmp_path / "store", "--warm-start", "--until", "InfraValidator",
             "--trainer.sense_contexts", "2", "--tuner.epochs", "1",
             "--tuner.search", "optimizer.learning_rate 0.05",
             "--evaluator.certain", "false", "--evaluator.min_gain", "-1000",
             "--schema_gen.max_duplicates", "1", "--schema_gen.max_in_train", "1",
             "--example_validator.allow", "max_duplicates", "--example_validator.allow",
             "max_in_train", "--example_validator.allow", "max_drift",
             "--example_validator.allow", "max_unseen"]  # fmt: skip
    for span in (1, 2, 1):
        line = [*words, "--span", span]
        status = main("language-model", "small-tied", [str(word) for word in line])
        said = capsys.readouterr()
        assert status == 0, said.err
    store = ArtifactStore(tmp_path / "store")
    assert len(store.all("model")) == 2  # the same span again, with the same model to begin with
    transformed = store.all("transformed")[-1]
    assert transformed.facts["new words"] == 2
    settings = json.loads((transformed.path / "lineage.json").read_text())
    assert set(settings["inputs"]) == {"examples", WARM_START}
    assert len(store.all("hyperparameters")) == 2
    for model in store.all("model"):
        assert "learning_rate = 0.05" in (model.path / "run" / "config.toml").read_text()
        (version,) = (model.path / "serving").iterdir()
        loaded = tf.saved_model.load(str(version))
        shown = loaded.signatures["sense_contexts"](tf.range(10))
        assert any(shown["before"].numpy().ravel()) and any(shown["probabilities"].numpy().ravel())
