"""A train step that JAX maps over the weights of several models trains each as it trains alone."""

import json

import keras
import numpy as np
import pytest

from keras_drill.callbacks import NonMonotonicAveraging
from keras_drill.optimizers import SequenceLengthSchedule, WarmupSchedule
from keras_drill.optimizers.window_lengths import draw_window_lengths
from keras_drill.workbench.tasks.language_model.build_model import build_model
from keras_drill.workbench.tasks.load_config import load_config

if keras.backend.backend() != "jax":
    pytest.skip("what JAX maps", allow_module_level=True)

from benchmarks.seeds_at_once import Text, main, tables

EPOCHS, ROWS, LENGTH, WIDER = 2, 3, 5, 7
OPTIONS = {
    "data.batch_size": ROWS,
    "data.sequence_length": LENGTH,
    "backbone.embedding_dim": 7,
    "backbone.units": 11,
    "head.learning_rate_multiplier": 0.1,
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(5)
    for split, lines in {"train": 23, "valid": 5, "test": 7}.items():
        words = rng.choice(list("abcdefghijk") + ["<unk>"] * (split != "train"), (lines, 13))
        (folder / f"{split}.txt").write_text("".join(" ".join(line) + "\n" for line in words))
    return folder


@pytest.fixture(scope="module")
def results(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    options = [f"{name}={value}" for name, value in OPTIONS.items()]
    words = ["--data", str(text), "--folder", str(folder), "--epochs", str(EPOCHS)]
    main([*words, "--recipe", "small-drill", "--seeds", "3", "5", "--options", *options])
    (file,) = folder.glob("*.json")
    return folder, json.loads(file.read_text())


@pytest.mark.parametrize("place, seed", [(0, 3), (1, 5)])
def test_each_seed_is_trained_as_it_is_alone(text, results, place, seed):
    text = Text(text)
    config = load_config("small-drill").replace({**OPTIONS, "training.seed": seed})
    assert config.head.dropout > 0  # which evaluating must leave out
    model = build_model(config, len(text.counts), ROWS)
    windows = [*zip(*text.windows("train", ROWS, LENGTH), strict=True)]
    rate = WarmupSchedule(
        config.optimizer.learning_rate, decay="cosine", decay_steps=EPOCHS * len(windows)
    )
    model.compile(keras.optimizers.SGD(rate, global_clipnorm=config.optimizer.clip_norm))
    for epoch in range(EPOCHS):
        model.backbone.reset_state()
        for tokens, targets in windows:
            model.train_on_batch(tokens, targets)
        found = results[1]["validation_after_epoch"][epoch][place]
        assert found == pytest.approx(perplexity(model, text, "valid"), rel=1e-4)
    assert results[1]["test_perplexity"][place] == pytest.approx(
        perplexity(model, text, "test"), rel=1e-4
    )


def perplexity(model, text, split, length=LENGTH):
    """From the log-probabilities of all words, token by token in the order of the text."""
    model.backbone.reset_state()
    rows = [[] for _ in range(ROWS)]
    for tokens, targets in zip(*text.windows(split, ROWS, length), strict=True):
        log_probs = model.predict_on_batch(tokens)
        for row, of_row in enumerate(np.take_along_axis(log_probs, targets[..., None], -1)):
            rows[row].extend(of_row[:, 0])
    return np.exp(-np.mean(np.concatenate(rows)[: len(text.splits[split])]))


VARIED = {
    "data.batch_size": ROWS,
    "data.sequence_length": WIDER,
    "backbone.embedding_dim": 7,
    "backbone.units": 11,
    "backbone.num_layers": 1,
    "optimizer.nonmonotone_interval": 1,
    "optimizer.weight_decay": 0.01,
}


def test_each_seed_averages_from_its_own_epoch_as_it_does_alone(text, tmp_path):
    epochs, seeds, share = 6, (3, 5), 0.17
    options = [f"{name}={value}" for name, value in VARIED.items()]
    words = ["--data", str(text), "--folder", str(tmp_path), "--epochs", str(epochs)]
    words += ["--share", str(share), "--seeds", *map(str, seeds)]
    main([*words, "--recipe", "ptb-awd-lstm-tied", "--options", *options])
    (file,) = tmp_path.glob("*.json")
    found = json.loads(file.read_text())
    assert len(set(found["averaged_epochs"])) == 2 and max(found["averaged_epochs"]) > 0
    text = Text(text, share)
    config = load_config("ptb-awd-lstm-tied").replace(VARIED)
    assert config.backbone.activation_regularization and config.data.variable_length
    # Windows are those of a run of the first seed.
    batches = [windows_of(text, seeds[0], epoch) for epoch in range(epochs)]
    assert len({tokens.shape[1] for epoch in batches for tokens, _ in epoch}) == 4
    model = compiled_model(config, text, batches)
    for place, seed in enumerate(seeds):
        # Into the first model, whose steps are compiled once.
        own = compiled_model(config.replace({"training.seed": seed}), text, batches)
        for variable, value in zip(model.variables, own.variables, strict=True):
            variable.assign(value)
        model.optimizer.iterations.assign(0)
        curve, test, averaged = trained_alone(model, text, batches)
        of_seed = [epoch[place] for epoch in found["validation_after_epoch"]]
        np.testing.assert_allclose(of_seed, curve, rtol=1e-4)
        assert found["averaged_epochs"][place] == averaged
        best = int(np.argmin(curve))
        assert found["valid_perplexity"][place] == pytest.approx(curve[best], rel=1e-4)
        assert found["test_perplexity"][place] == pytest.approx(test[best], rel=1e-4)


def windows_of(text, seed, epoch):
    """Cut from the text with the lengths that a run draws."""
    ids = text.splits["train"]
    ids = ids[: len(ids) // ROWS * ROWS]
    rows = ids.reshape(ROWS, -1)
    before = np.concatenate([[text.end], ids[:-1]]).reshape(ROWS, -1)
    ends = np.cumsum(draw_window_lengths(rows.shape[1], WIDER, seed, epoch))
    assert ends[-1] == rows.shape[1]
    cuts = zip([0, *ends[:-1]], ends, strict=True)
    return [(before[:, i:j].astype("int32"), rows[:, i:j]) for i, j in cuts]


def compiled_model(config, text, batches):
    model = build_model(config, len(text.counts), ROWS)
    options = config.optimizer
    lengths = [tokens.shape[1] for epoch in batches for tokens, _ in epoch]
    rate = SequenceLengthSchedule(options.learning_rate, lengths, config.data.sequence_length)
    model.compile(
        keras.optimizers.SGD(
            rate, weight_decay=options.weight_decay, global_clipnorm=options.clip_norm
        )
    )
    return model


def trained_alone(model, text, batches):
    """Perplexities after each epoch, and the number of epochs with averaging, of `fit`'s parts."""
    callback = NonMonotonicAveraging(non_monotone_interval=1)
    callback.set_model(model)
    curve, test, averaged = [], [], 0
    for number, epoch in enumerate(batches):
        averaged += callback.averaging
        callback.on_epoch_begin(number)
        model.backbone.reset_state()
        for step, (tokens, targets) in enumerate(epoch):
            model.train_on_batch(tokens, targets)
            callback.on_train_batch_end(step)
        callback.on_test_begin()
        curve.append(perplexity(model, text, "valid", WIDER))
        test.append(perplexity(model, text, "test", WIDER))
        callback.on_test_end()
        callback.on_epoch_end(number, {"val_loss": np.log(curve[-1])})
    return curve, test, averaged


def test_nats_by_count_add_up(text, results):
    _, found = results
    text = Text(text)
    seen = text.counts[text.splits["test"]]
    shares = {"unseen": np.mean(seen == 0), "1–9": np.mean((seen > 0) & (seen < 10))}
    shares["10–49"] = np.mean(seen >= 10)
    nats = found["test_nats_by_count"]
    total = sum(np.array(nats[name]) * share for name, share in shares.items() if share)
    np.testing.assert_allclose(np.exp(total), found["test_perplexity"], rtol=1e-5)


def test_tables(results, tmp_path):
    _, found = results
    worse = {bin: [x + 0.25 for x in nats] for bin, nats in found["test_nats_by_count"].items()}
    (tmp_path / "small-drill-x.json").write_text(json.dumps(found))
    (tmp_path / "small-tied.json").write_text(json.dumps({**found, "test_nats_by_count": worse}))
    perplexities, savings = tables(tmp_path).split("\n\n")
    assert perplexities.count("| 2 |") == 2
    assert savings.splitlines()[2] == "| small-drill-x |" + " 0.250 ± 0.000 |" * len(worse)


def test_a_result_is_not_made_twice(text, results, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.seeds_at_once.train", None)
    options = [f"{name}={value}" for name, value in OPTIONS.items()]
    words = ["--data", str(text), "--folder", str(results[0]), "--recipe", "small-drill"]
    words += ["--seeds", "3", "5", "--options", *options]
    main([*words, "--epochs", str(EPOCHS)])
    with pytest.raises(SystemExit):
        main([*words, "--epochs", str(EPOCHS + 1)])
    assert "for other seeds, epochs, share" in capsys.readouterr().err


@pytest.mark.parametrize("recipe", ["small-mos", "small-kerbs"])
def test_what_it_does_not_train_is_refused(text, tmp_path, capsys, recipe):
    with pytest.raises(SystemExit):
        main(["--data", str(text), "--folder", str(tmp_path), "--recipe", recipe])
    assert f"SGD or NT-ASGD and have no senses, not {recipe}" in capsys.readouterr().err


def test_options_that_would_change_nothing_are_refused(text, tmp_path, capsys):
    words = ["--data", str(text), "--folder", str(tmp_path), "--recipe", "small-tied", "--options"]
    with pytest.raises(SystemExit):
        main([*words, "optimizer.learning_rate=3", "optimizer.warmup_steps=7"])
    assert "for all here: optimizer.warmup_steps\n" in capsys.readouterr().err
