"""Pipelines whose models know words by vectors from a file."""

import numpy as np
import pytest

from pipelines.command_line import main
from pipelines.components.training_settings import training_settings
from pipelines.engine.artifact_store import ArtifactStore
from tests.pipelines.test_warm_start import other_corpus
from tests.workbench.training.tiny import tiny_config, write_corpus

WORDS = ["the", "a", "old", "cat", "dog", "bird", "sees", "hears", "follows", "."]


def write_vectors(path, seed):
    random = np.random.default_rng(seed)
    lines = (f"{word} {' '.join(map(str, random.normal(size=13)))}\n" for word in WORDS)
    path.write_text("".join(lines))
    return path


def test_a_training_depends_on_what_is_in_files_that_its_options_name(tmp_path):
    vectors = write_vectors(tmp_path / "words.vec", seed=1)
    start = tmp_path / "run"
    start.mkdir()
    (start / "model.keras").write_bytes(b"weights")
    config = tiny_config(
        "", head_kind="described", head_descriptions=str(vectors), training_start_from=str(start)
    )
    told = [training_settings(config)]
    assert training_settings(config.replace({"data.path": "elsewhere"})) == told[0]
    write_vectors(vectors, seed=2)
    told.append(training_settings(config))
    (start / "model.keras").write_bytes(b"others")
    told.append(training_settings(config))
    (start / "vocabulary.txt").write_text("words\n")
    told.append(training_settings(config))
    (start / "report.html").write_text("no part of the model")
    assert training_settings(config) == told[-1]
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    by_encoder = config.replace({"head.descriptions": f"encoder:{encoder}"})
    for content in (b"weights", b"others"):
        (encoder / "model.safetensors").write_bytes(content)
        told.append(training_settings(by_encoder))
    assert all(one not in told[:place] for place, one in enumerate(told))


@pytest.mark.parametrize("descriptions", ["", "missing.vec", "encoder:hf://a/preset"])
def test_what_is_not_there_is_left_to_the_training(descriptions):
    config = tiny_config("", head_kind="described", head_descriptions=descriptions)
    assert set(training_settings(config)) == {"config"}


@pytest.mark.slow
def test_other_vectors_make_another_model_and_a_new_day_describes_its_words(tmp_path, capsys):
    corpus = write_corpus(tmp_path / "day-1")
    other_corpus(corpus, tmp_path / "day-2")
    vectors = write_vectors(tmp_path / "words.vec", seed=1)
    config = tiny_config(
        corpus,
        data_tokenizer="whitespace",
        head_kind="described",
        head_descriptions=str(vectors),
        training_epochs=2,
        optimizer_learning_rate=0.01,
    )
    (tmp_path / "tiny.toml").write_text(config.to_toml())
    store = ArtifactStore(tmp_path / "store")

    def models(span):
        words = [tmp_path / "tiny.toml", "--data", f"{tmp_path}/day-{{SPAN}}", "--folder",
                 store.folder, "--span", span, "--warm-start", "--until", "InfraValidator",
                 "--evaluator.certain", "false", "--evaluator.min_gain", "-1000",
                 "--schema_gen.max_duplicates", "1", "--schema_gen.max_in_train", "1",
                 "--example_validator.allow", "max_duplicates", "--example_validator.allow",
                 "max_in_train", "--example_validator.allow", "max_drift",
                 "--example_validator.allow", "max_unseen"]  # fmt: skip
        status = main("language-model", "small-tied", [str(word) for word in words])
        assert status == 0, capsys.readouterr().err
        return [model.path / "run" for model in store.all("model")]

    assert len(models(1)) == len(models(1)) == 1
    write_vectors(vectors, seed=2)
    first, second = models(1)
    assert not np.array_equal(
        np.load(first / "descriptions.npy"), np.load(second / "descriptions.npy")
    )
    third = models(2)[-1]
    more, fewer = (len(np.load(run / "descriptions.npy")) for run in (third, second))
    assert more == fewer + 2
