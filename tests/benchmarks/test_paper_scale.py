"""A training on an accelerator continues where it was, and is compared with a known one first."""

import json

import keras
import numpy as np
import pytest

if keras.backend.backend() != "jax":
    pytest.skip("a loop of JAX", allow_module_level=True)

from benchmarks import paper_scale
from benchmarks.paper_scale import Trained, compare_losses, load, main, save
from keras_drill.workbench.tasks.load_config import load_config

OPTIONS = [
    "data.batch_size=3",
    "data.sequence_length=5",
    "backbone.embedding_dim=7",
    "backbone.units=11",
    "backbone.num_layers=2",
    "training.epochs=2",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(5)
    for split, lines in {"train": 23, "valid": 5, "test": 7}.items():
        words = rng.choice(list("abcdefghijk") + ["<unk>"], (lines, 13))
        (folder / f"{split}.txt").write_text("".join(" ".join(line) + "\n" for line in words))
    return folder


def run(recipe, text, *words, options=()):
    main([recipe, "--data", str(text), *map(str, words), "--options", *OPTIONS, *options])


@pytest.mark.slow
def test_it_continues_with_the_state_that_it_had(text, tmp_path, monkeypatch):
    check, whole, parts = tmp_path / "check.json", tmp_path / "whole", tmp_path / "parts"
    run("ptb-awd-lstm-tied", text, "--write-check", check, "--check-steps", 4)
    words = ["--minutes", 10, "--store", "float32"]
    run("ptb-awd-lstm-tied", text, *words, "--state", whole, "--check", check)
    log = json.loads((whole / "log.json").read_text())
    assert [epoch["epoch"] for epoch in log["epochs"]] == [1, 2]
    assert log["check"] < 1e-5 and log["epochs"][1]["valid_perplexity"] < 60
    assert "partial" not in log and log["tokens_per_second"] > 0
    # Another process: one epoch, then the next one from its files, in several pieces.
    monkeypatch.setattr(paper_scale, "PIECE", 3001)
    clock = iter([0, 1, 1, 1])
    monkeypatch.setattr(paper_scale.time, "time", lambda: next(clock, 1e9))
    run("ptb-awd-lstm-tied", text, *words, "--state", parts)
    monkeypatch.undo()
    cut = json.loads((parts / "log.json").read_text())
    assert len(cut["epochs"]) == 1 and len(cut["pieces"]) > 1
    run("ptb-awd-lstm-tied", text, *words, "--state", parts)
    again = json.loads((parts / "log.json").read_text())
    for key in ("valid_perplexity", "last_train_loss"):
        expected = [epoch[key] for epoch in log["epochs"]]
        np.testing.assert_allclose([x[key] for x in again["epochs"]], expected, rtol=1e-5)
    with pytest.raises(SystemExit):
        run("ptb-awd-lstm-drill", text, *words, "--state", parts)


def test_other_losses_stop_it():
    losses = np.array([6.0, 5.0])
    assert compare_losses(losses, {"losses": [6.0, 5.0001]}) < 1e-3
    with pytest.raises(SystemExit, match="not those of --check"):
        compare_losses(losses, {"losses": [6.0, 5.1]})


@pytest.mark.slow
def test_averages_are_means_of_the_weights_after_each_step(text):
    config = load_config("ptb-awd-lstm-tied").replace(dict(x.split("=") for x in OPTIONS))
    words = paper_scale.Text(text)
    windows = words.windows("train", 3, 5)
    trained, seen = Trained(config, len(words.counts)), []
    trained.train(windows, 0, 2, False)
    for start in range(2, 5):
        trained.train(windows, start, start + 1, True)
        seen.append([np.array(x) for x in trained.state[0]])
    for mean, *values in zip(trained.means, *seen, strict=True):
        np.testing.assert_allclose(mean, np.mean(values, axis=0), atol=1e-6)


@pytest.mark.slow
def test_senses_move(text, tmp_path):
    senses = ["senses.interval=7", "senses.ratio=0.5"]
    run("ptb-awd-lstm-kerbs", text, "--state", tmp_path / "k", "--minutes", 10, options=senses)
    log = json.loads((tmp_path / "k" / "log.json").read_text())
    assert len(log["epochs"]) == 2 and log["store"] == "float16"
    arrays = load(tmp_path / "k", log)
    moved = next(x for name, x in arrays.items() if name.startswith("others") and x.ndim == 1
                 and x.dtype == "int32" and len(x) > 20)  # fmt: skip
    assert moved.tolist() != sorted(moved.tolist())
    save(tmp_path / "k", arrays, log)
    assert sorted(load(tmp_path / "k", log)) == sorted(arrays)
