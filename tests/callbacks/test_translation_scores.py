import csv
import math

import keras
import numpy as np
import pytest
from keras import ops

pytest.importorskip("sacrebleu")

from keras_drill.callbacks import NonMonotonicAveraging, TranslationScores
from keras_drill.metrics import score_texts

SOURCES = ["ein Hund läuft", "zwei Männer", "ein Mann"]
REFERENCES = ["a dog runs fast today", ["two men", "two males"], "a man"]


class Script:
    """Gives the texts of one epoch after the other, and says for which sources it was asked."""

    def __init__(self, *epochs):
        self.epochs, self.asked = list(epochs), []

    def __call__(self, sources):
        self.asked.append(sources)
        return self.epochs[len(self.asked) - 1]


BAD = ["x", "y", "z"]
BETTER = ["a dog", "two men", "man"]
PERFECT = ["a dog runs fast today", "two males", "a man"]


def train(callbacks, epochs=5):
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    x, y = np.ones((2, 3)), np.ones((2, 1))
    return model.fit(
        x, y, epochs=epochs, verbose=0, validation_data=(x, y), callbacks=callbacks
    ).history


def test_scores_are_in_the_logs_of_history_and_of_the_callbacks_behind(tmp_path):
    translate = Script(BAD, BETTER, PERFECT)
    scores = TranslationScores(translate, SOURCES, REFERENCES, scores=("bleu", "chrf", "bleu_1"))
    history = train([scores, keras.callbacks.CSVLogger(tmp_path / "log.csv")], epochs=3)
    expected = [score_texts(texts, REFERENCES) for texts in translate.epochs]
    for name in ("bleu", "chrf", "bleu_1"):
        assert history[f"val_{name}"] == [getattr(each, name) for each in expected]
    assert history["val_chrf"] == sorted(history["val_chrf"]) and history["val_chrf"][2] == 100
    with open(tmp_path / "log.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_bleu"]) for row in rows] == pytest.approx(history["val_bleu"])
    assert translate.asked == [SOURCES] * 3
    assert scores.hypotheses == PERFECT and scores.text_scores == expected[2]


def test_training_stops_early_by_bleu():
    translate = Script(BAD, PERFECT, BETTER, BETTER, PERFECT)
    scores = TranslationScores(translate, SOURCES, REFERENCES)
    stopping = keras.callbacks.EarlyStopping(
        monitor="val_bleu", mode="max", patience=2, restore_best_weights=True
    )
    history = train([scores, stopping])
    assert len(history["loss"]) == 4 and stopping.best_epoch == 1
    assert history["val_bleu"][1] == pytest.approx(stopping.best)


def test_checkpoints_are_kept_by_chrf(tmp_path):
    scores = TranslationScores(Script(BAD, PERFECT, BETTER), SOURCES, REFERENCES)
    keep = keras.callbacks.ModelCheckpoint(
        tmp_path / "{epoch}.weights.h5",
        monitor="val_chrf",
        mode="max",
        save_best_only=True,
        save_weights_only=True,
    )
    train([scores, keep], epochs=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.weights.h5", "2.weights.h5"]


def test_the_average_of_the_weights_is_evaluated_behind_the_callback_that_makes_it():
    """After the epoch in which averaging began, `translate` sees the mean, not the last weights."""
    seen, steps = [], []

    class Weights(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            steps.append(ops.convert_to_numpy(self.model.weights[0]))

    weights, averaging = Weights(), NonMonotonicAveraging(non_monotone_interval=0)
    averaging.averaging = True

    def translate(sources):
        seen.append(ops.convert_to_numpy(weights.model.weights[0]))
        return BAD

    train([weights, averaging, TranslationScores(translate, SOURCES, REFERENCES)], epochs=3)
    for epoch in range(3):
        np.testing.assert_allclose(seen[epoch], np.mean(steps[: epoch + 1], axis=0), rtol=1e-6)
    assert np.abs(seen[2] - steps[2]).max() > 1e-3


def test_a_loop_of_ones_own_reads_the_scores_from_the_callback():
    scores = TranslationScores(Script(BETTER, PERFECT), SOURCES, REFERENCES)
    assert scores.text_scores is None and scores.hypotheses is None
    scores.on_epoch_end(0)
    assert scores.text_scores == score_texts(BETTER, REFERENCES)


def test_words_and_case_are_those_that_were_asked_for():
    upper = [text.upper() for text in PERFECT]
    scores = TranslationScores(Script(upper), SOURCES, REFERENCES, tokenize="char", lowercase=True)
    scores.on_epoch_end(0)
    assert scores.text_scores.bleu == pytest.approx(100)
    assert "case:lc|eff:no|tok:char" in scores.text_scores.bleu_signature


def test_an_epoch_in_which_nothing_is_written_counts_as_nothing():
    history = train([TranslationScores(Script([""] * 3), SOURCES, REFERENCES)], epochs=1)
    assert history["val_bleu"] == history["val_chrf"] == [0.0]
    assert math.isfinite(history["val_loss"][0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scores": ("bleu", "ter")}, "`scores` must be a list of names from bleu, bleu_1"),
        ({"scores": "bleu"}, "`scores` must be a list of names from"),
        ({"sources": ["a"]}, "`sources` and `references` must have the same length"),
        ({"references": [1, 2, 3]}, "`references` strings or non-empty sequences"),
        ({"tokenize": "14b"}, "`tokenize` must be one of"),
    ],
)
def test_bad_arguments_are_named_before_training(changed, message):
    arguments = {"translate": Script(), "sources": SOURCES, "references": REFERENCES} | changed
    with pytest.raises(ValueError, match=message) as raised:
        TranslationScores(**arguments)
    assert "Received" in str(raised.value)


def test_a_search_that_loses_sentences_is_noticed():
    scores = TranslationScores(Script(["a"]), SOURCES, REFERENCES)
    with pytest.raises(ValueError, match="must have the same length"):
        scores.on_epoch_end(0, {})
