"""`keras-drill train --strategy`: the same run on one device, two replicas and two workers."""

import json
import random
import signal

import numpy as np
import pytest

from tests.distribute.runs import (
    COMMAND,
    WAYS,
    assert_alike,
    checkpoint,
    last_step,
    train,
    train_each_way,
    training,
    wait_for_step,
)
from tests.distribute.workers import ended, started
from tests.workbench.training.tiny import tiny_config, write_corpus
from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs

pytestmark = pytest.mark.slow

SEVERAL = [way for way in WAYS if way != "none"]
# Replicas drop alike, whatever their number, so that none agrees with another number of them.
NO_DROPOUT = {
    f"backbone_{name}dropout": 0.0 for name in ("", "hidden_", "input_", "embedding_", "weight_")
}


def language_model(folder):
    """53 steps of batches of carried state, the last one of an epoch shorter; AR, TAR, senses that
    move, clipping, and averaging from the second epoch on."""
    return tiny_config(
        write_corpus(folder / "text"),
        data_batch_size=4,
        **NO_DROPOUT,
        head_kind="kerbs",
        senses_interval=7,
        senses_moved_embedding="near",
        optimizer_kind="nt-asgd",
        optimizer_learning_rate=2.0,
        optimizer_clip_norm=0.05,  # less than most
        optimizer_nonmonotone_interval=1,
        training_epochs=4,
        training_checkpoint_every=5,
        training_keep_checkpoints=100,
        training_deterministic=True,
        training_tensorboard=True,
    )


def translation(folder):
    """Batches of unequal numbers of pairs, one of a single pair among them."""
    return tiny_pairs_config(
        write_pairs(folder / "pairs"),
        backbone_dropout=0.0,
        data_batch_tokens=40,
        head_kind="drill",
        decoding_validation_sentences=3,
        training_epochs=2,
        training_checkpoint_every=5,
        training_keep_checkpoints=3,
        training_average_checkpoints=2,
        training_deterministic=True,
    )


def described_words(folder):
    """Labels of vectors, whose network runs over all words on each replica."""
    rng = np.random.default_rng(7)
    words = ["the", "a", "old", "cat", "dog", "bird", "sees", "hears", "follows"]
    lines = (f"{word} {' '.join(map(str, rng.normal(size=13)))}\n" for word in words)
    (folder / "words.vec").write_text("".join(lines))
    return tiny_config(
        write_corpus(folder / "text"),
        data_batch_size=4,
        **NO_DROPOUT,
        head_kind="described",
        head_descriptions=str(folder / "words.vec"),
        optimizer_clip_norm=0.05,
        training_epochs=2,
        training_deterministic=True,
    )


RUNS = {"language-model": language_model, "translation": translation}


def test_labels_of_descriptions(tmp_path):
    (tmp_path / "options.toml").write_text(described_words(tmp_path).to_toml())
    train_each_way(tmp_path / "options.toml", tmp_path)
    for way in SEVERAL:
        assert_alike(tmp_path / "none", tmp_path / way)


@pytest.fixture(scope="module", params=RUNS)
def runs(request, tmp_path_factory):
    """A folder with the same training each way, and what was said."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "options.toml").write_text(RUNS[request.param](folder).to_toml())
    return folder, train_each_way(folder / "options.toml", folder)


@pytest.mark.parametrize("way", SEVERAL)
def test_two_end_where_one_does(runs, way):
    folder, _ = runs
    assert checkpoint(folder / "none")[1]["training"]["step"] > 50
    assert_alike(folder / "none", folder / way)


@pytest.mark.parametrize("way", SEVERAL)
def test_what_is_written_and_said_is_that_of_one_device(runs, way):
    """The model for all rows of a batch, evaluated alike; files and words of the chief alone."""
    folder, said = runs
    one, other = (
        {
            str(p.relative_to(folder / w))
            for p in (folder / w).rglob("*")
            if "tfevents" not in p.name
        }
        for w in ("none", way)
    )
    assert one == other
    results = [json.loads((folder / w / "results.json").read_text()) for w in ("none", way)]
    for name in ("valid_perplexity", "test_perplexity"):
        assert results[1][name] == pytest.approx(results[0][name], rel=1e-4)
    assert "best epoch" in said[way][0]
    for words in said[way][1:]:
        assert "epoch" not in words and "report" not in words


def test_a_training_goes_on_with_another_number_of_replicas(tmp_path):
    """In the middle of an epoch, with carried state; SIGTERM to any worker saves and ends all."""
    options = tmp_path / "options.toml"
    options.write_text(language_model(tmp_path).to_toml())
    train("none", options, tmp_path / "whole")
    for way, step in (("multi-worker", 10), ("none", 20), ("mirrored", 30)):
        before = last_step(tmp_path / "torn")
        with training(way, options, tmp_path / "torn") as processes:
            # A step of its own, before which it may not have begun to listen to signals.
            wait_for_step(tmp_path / "torn", max(step, before + 1), processes)
            random.choice(processes).send_signal(signal.SIGTERM)
            found = ended(processes)
        assert {status for status, _ in found} <= {0, 143}, found
        assert all("Traceback" not in said for _, said in found), found
    train("multi-worker", options, tmp_path / "torn")
    assert_alike(tmp_path / "whole", tmp_path / "torn")


def test_rows_that_cannot_be_shared_out_are_refused_by_all(tmp_path):
    options = tmp_path / "options.toml"
    options.write_text(language_model(tmp_path).replace({"data.batch_size": 3}).to_toml())
    with training("multi-worker", options, tmp_path / "run") as processes:
        found = ended(processes)
    for status, said in found:
        assert status == 1 and "data.batch_size must be a multiple of the 2 replicas" in said
    assert not (tmp_path / "run" / "config.toml").exists()


def test_what_the_chief_cannot_do_ends_all(tmp_path):
    options = tmp_path / "options.toml"
    options.write_text(language_model(tmp_path).to_toml())
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "letter.txt").write_text("not a run")
    with training("multi-worker", options, folder) as processes:
        (status, said), (other_status, other_said) = ended(processes)
    assert status == other_status == 1
    assert "holds files but no run" in said
    assert "worker 0 has failed" in other_said and "Traceback" not in other_said


def test_workers_with_other_texts_are_refused(tmp_path):
    (tmp_path / "options.toml").write_text(language_model(tmp_path).to_toml())
    words = ["train", tmp_path / "options.toml", "--run", tmp_path / "run"]
    words += ["--strategy", "multi-worker"]
    other = write_corpus(tmp_path / "other")
    (other / "train.txt").write_text((other / "train.txt").read_text() + "the cat sees a dog .\n")
    with started(COMMAND, [words, [*words, "--data", other]]) as processes:
        found = ended(processes)
    for status, said in found:
        assert status == 1 and "worker 1 has a different vocabulary" in said
