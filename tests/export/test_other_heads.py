"""Mixtures of softmaxes, and words with several senses, in exported models."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import WordTokenizer
from keras_drill.export import SenseContexts, TextModel, export_saved_model
from tests.decoding.tiny_models import (
    awd_lstm_with_kerbs,
    gru_with_drill_and_kerbs,
    gru_with_mixture,
)
from tests.export.checks import (
    check_operations,
    check_same_answers,
    meta_graph,
    warmup_requests,
)

TEXTS = ["The cat sat on a mat.", "", "an unknown zebra, é!\nThe dog ran (here)\n"]
MODELS = {
    "kerbs": awd_lstm_with_kerbs,
    "drill-kerbs": gru_with_drill_and_kerbs,
    "mos": gru_with_mixture,
}
WITH_SENSES = ["kerbs", "drill-kerbs"]
SETTINGS = {"max_new_tokens": 5, "k": 3}


@pytest.fixture(scope="module")
def models():
    return {name: make() for name, make in MODELS.items()}


@pytest.fixture(scope="module")
def text_models(models, vocabulary):
    return {
        name: TextModel(model, WordTokenizer(), vocabulary, **SETTINGS)
        for name, model in models.items()
    }


@pytest.fixture(scope="module")
def folders(models, vocabulary, tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved_models")
    return {
        name: export_saved_model(model, directory / name, WordTokenizer(), vocabulary, **SETTINGS)
        for name, model in models.items()
    }


def ids_of(vocabulary, text):
    """With the end token in front and behind."""
    ids = [vocabulary.end_id]
    for line in text.removesuffix("\n").split("\n"):
        ids += vocabulary.ids(WordTokenizer().tokenize(line)).numpy().tolist()
        ids.append(vocabulary.end_id)
    return np.array(ids)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_score_is_the_models_log_probability(name, models, text_models, vocabulary):
    answer = text_models[name].score(TEXTS)
    for row, text in enumerate(TEXTS):
        ids = ids_of(vocabulary, text)
        log_probs = models[name](ids[None, :-1]).numpy()[0]
        expected = log_probs[np.arange(len(ids) - 1), ids[1:]]
        np.testing.assert_allclose(
            answer["log_probs"][row, : len(expected)], expected, rtol=1e-4, atol=1e-5
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_SENSES)
def test_senses_are_the_posteriors_of_the_output_layer(name, models, text_models, vocabulary):
    model = models[name]
    allocation = model.head.allocation
    answer = {key: value.numpy() for key, value in text_models[name].senses(TEXTS).items()}
    for row, text in enumerate(TEXTS):
        ids = ids_of(vocabulary, text)
        length = answer["lengths"][row]
        assert length == len(ids) - 1
        words = [word.decode() for word in answer["words"][row, :length]]
        assert words == [vocabulary.tokens[i] for i in ids[1:]]
        senses = answer["senses"][row]
        np.testing.assert_array_equal(senses[:length], allocation.senses_of_word.numpy()[ids[1:]])
        hidden = model.backbone(ids[None, :-1])
        expected = model.head.sense_posteriors(hidden, ids[None, 1:]).numpy()[0]
        probabilities = answer["probabilities"][row]
        np.testing.assert_allclose(probabilities[:length], expected, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(probabilities[:length].sum(axis=-1), 1, rtol=1e-5)
        assert (senses[length:] == -1).all() and not probabilities[length:].any()
        assert not probabilities[senses == -1].any()


@pytest.mark.slow
def test_senses_in_tiles(models, text_models, vocabulary, monkeypatch):
    whole = text_models["kerbs"].senses(TEXTS)["probabilities"]  # traced without the small tile
    monkeypatch.setattr("keras_drill.export.tiles._TILE_BYTES", 4 * 53 * 3)
    tiled = TextModel(models["kerbs"], WordTokenizer(), vocabulary, **SETTINGS)
    np.testing.assert_allclose(tiled.senses(TEXTS)["probabilities"], whole, rtol=1e-4, atol=1e-6)
    assert tiled.senses(tf.constant([], tf.string))["senses"].shape[0] == 0


@pytest.mark.slow
def test_only_models_with_senses_tell_them(text_models, folders):
    for name in MODELS:
        has_senses = name in WITH_SENSES
        assert ("senses" in text_models[name].signatures()) == has_senses
        signatures = meta_graph(folders[name]).signature_def
        assert ("senses" in signatures) == has_senses
        if has_senses:
            shape = signatures["senses"].outputs["senses"].tensor_shape
            assert [dim.size for dim in shape.dim] == [-1, -1, 4]
        warmed = {signature for signature, _ in warmup_requests(folders[name])}
        assert warmed == set(text_models[name].signatures()) - {"serving_default"}


@pytest.mark.slow
def test_a_tied_table_is_written_once(models, folders):
    expected = {"kerbs": 1, "drill-kerbs": 2}  # DRILL's labels are another table
    for name, tables in expected.items():
        shape = list(models[name].head.embeddings.shape)
        written = tf.train.list_variables(str(folders[name] / "variables" / "variables"))
        assert [found for _, found in written].count(shape) == tables, written


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_only_operations_that_a_stock_server_has(name, folders):
    check_operations(folders[name])


@pytest.mark.slow
def test_another_process_answers_byte_for_byte_without_keras(folders, text_models, tmp_path):
    texts = np.array([text.encode() for text in TEXTS], dtype="S")
    cases = []
    for name in MODELS:
        requests = [("score", {"texts": texts})]
        if name in WITH_SENSES:
            requests.append(("senses", {"texts": texts}))
        if name == "kerbs":  # whose state decides which sense a word is read as
            requests.append(("continue", {"prompts": texts}))
        cases.append((text_models[name], folders[name], requests))
    signatures = check_same_answers(cases, tmp_path)
    assert [("senses" in names) for names in signatures] == [True, True, False]


def test_senses_that_move_later_are_not_in_what_was_folded(vocabulary):
    model = awd_lstm_with_kerbs()
    folded = model.head.folded()
    hidden = keras.random.normal((3, 7, 5), seed=1)
    before = folded(hidden).numpy()
    model.head.allocation.assign(np.roll(model.head.allocation.sense_to_word.numpy(), 1))
    np.testing.assert_array_equal(folded(hidden), before)
    assert abs(model.head(hidden) - before).numpy().max() > 0.01


@pytest.mark.slow
def test_examples_of_senses_are_in_the_export(models, vocabulary, tmp_path):
    several = [[("the", "sat .", 0.75), ("", "ran", 0.5)], [], [("é", "", 1.0)]]
    contexts = SenseContexts(several)
    folder = export_saved_model(
        models["kerbs"],
        tmp_path / "kerbs",
        WordTokenizer(),
        vocabulary,
        contexts=contexts,
        weights="int8",
        **SETTINGS,
    )
    function = tf.saved_model.load(str(folder)).signatures["sense_contexts"]
    answer = {name: value.numpy() for name, value in function(tf.constant([2, 0, 7, -1])).items()}
    empty = [b"", b""]
    assert answer["before"].tolist() == [["é".encode(), b""], [b"the", b""], empty, empty]
    assert answer["after"].tolist() == [empty, [b"sat .", b"ran"], empty, empty]
    assert answer["probabilities"].tolist() == [[1, 0], [0.75, 0.5], [0, 0], [0, 0]]
    assert function(tf.constant([], tf.int32))["before"].shape == (0, 2)
    assert "sense_contexts" in {name for name, _ in warmup_requests(folder)}
    check_operations(folder)
    assert contexts.num_words == 5


def test_models_without_examples_of_senses_have_no_such_signature(text_models):
    assert "sense_contexts" not in text_models["kerbs"].signatures()
    with pytest.raises(ValueError, match=r"made with the argument `contexts`.*Received"):
        text_models["kerbs"].sense_contexts([0])
    assert SenseContexts([])([0])["before"].numpy().tolist() == [[b""]]
