"""The signature `examples`, and that answers depend on nothing else in the batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import (
    WordTokenizer,
)
from keras_drill.data.serialize_examples import serialize_examples
from keras_drill.decoding import BeamSearch
from keras_drill.export import TextModel, Translator
from keras_drill.export.warmup_requests import example_inputs
from keras_drill.models import (
    Transformer,
    TransformerLanguageBackbone,
)
from keras_drill.models.language_model import LanguageModel
from keras_drill.models.sequence_to_sequence import SequenceToSequence
from keras_drill.output_layer import OutputLayer
from tests.decoding.tiny_models import awd_lstm_with_kerbs
from tests.export.conftest import SENTENCES
from tests.export.texts import NASTY


def filled(model):
    """Distributions far from uniform."""
    random = np.random.default_rng(17)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.5, size=variable.shape))
    return model


def language_model(backbone):
    model = LanguageModel(backbone, OutputLayer(23))
    model(np.zeros((1, 1), "int32"))
    return filled(model)


def functional_backbone():
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.GRU(7, return_sequences=True)(keras.layers.Embedding(23, 5)(tokens))
    return keras.Model(tokens, hidden)


LANGUAGE_MODELS = {
    "a cache": lambda: TransformerLanguageBackbone(23, 6, 2, num_heads=3, feed_forward_dim=7),
    "the prefix": functional_backbone,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
@pytest.mark.parametrize("signature", ["continue", "sample", "score", "top_k", "examples"])
def test_other_backbones_answer_many_as_one_at_a_time(signature, kind, vocabulary):
    model = language_model(LANGUAGE_MODELS[kind]())
    module = TextModel(model, WordTokenizer(), vocabulary, max_new_tokens=5, k=3)
    texts = [text for text in NASTY if len(text) < 1000]
    together = answers(module, signature, texts)
    for row, text in enumerate(texts):
        assert_same_row(together, answers(module, signature, [text]), row)


@pytest.mark.slow
def test_a_transformer_answers_many_as_one_at_a_time(translator):
    recurrent, _ = translator
    source, target = recurrent.source, recurrent.target
    backbone = Transformer(
        len(target.vocabulary),
        6,
        num_layers=2,
        num_heads=3,
        feed_forward_dim=7,
        source_vocabulary_size=len(source.vocabulary),
    )
    model = SequenceToSequence(backbone, OutputLayer(len(target.vocabulary)))
    module = Translator(filled(model), source, target, BeamSearch(3, 1.0), 23, 13)
    together = answers(module, "examples", NASTY)
    for row, text in enumerate(NASTY):
        assert_same_row(together, answers(module, "examples", [text]), row)


@pytest.fixture(scope="module")
def senses_model(vocabulary):
    return TextModel(awd_lstm_with_kerbs(), WordTokenizer(), vocabulary, max_new_tokens=3, k=3)


def answers(module, signature, texts):
    function = module.signatures()[signature]
    (specs, _) = function.get_concrete_function().structured_input_signature
    found = function(**example_inputs([spec.name for spec in specs], texts))
    return {name: value.numpy() for name, value in found.items()}


def assert_same_row(together, alone, row):
    assert set(together) == set(alone)
    for name, values in together.items():
        (expected,), found = alone[name], values[row]
        if values.ndim > 1:
            padding = -1 if name == "senses" else values.dtype.type()
            assert (found[len(expected) :] == (b"" if values.dtype == object else padding)).all()
            found = found[: len(expected)]
        if values.dtype == np.float32:
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "signature",
    [
        "continue",
        "sample",
        "score",
        "top_k",
        "examples",
    ],
)
def test_many_at_once_are_answered_as_one_at_a_time(signature, text_model):
    together = answers(text_model, signature, NASTY)
    for row, text in enumerate(NASTY):
        assert_same_row(together, answers(text_model, signature, [text]), row)


@pytest.mark.slow
def test_many_senses_at_once_are_those_of_one_at_a_time(senses_model):
    together = answers(senses_model, "senses", NASTY)
    for row in (0, 1, 4, 7):
        assert_same_row(together, answers(senses_model, "senses", NASTY[row : row + 1]), row)


@pytest.mark.slow
@pytest.mark.parametrize("signature", ["translate", "examples"])
def test_many_translations_at_once_are_those_of_one_at_a_time(signature, translator):
    together = answers(translator[0], signature, NASTY)
    for row, text in enumerate(NASTY):
        assert_same_row(together, answers(translator[0], signature, [text]), row)


@pytest.mark.slow
def test_a_language_model_scores_and_continues_examples(text_model):
    texts, prompts = NASTY[:4], NASTY[4:8]
    examples = [
        *serialize_examples({"text": texts, "line": [b"7"] * 4}),
        *serialize_examples({"prompt": prompts}),
        *serialize_examples({"text": texts[:1], "prompt": prompts[:1]}),
    ]
    found = text_model.examples(examples)
    scores, continued = text_model.score(texts), text_model.continue_text(prompts)
    for name, values in scores.items():
        if values.dtype == tf.float32:
            np.testing.assert_allclose(found[name][:4, ...], values, rtol=1e-5)
        else:
            np.testing.assert_array_equal(found[name][:4, ...], values)
    assert not found["lengths"][4:8].numpy().any() and not found["perplexities"][4:8].numpy().any()
    assert found["answers"].numpy().tolist() == [
        *[b""] * 4,
        *continued["continuations"].numpy(),
        continued["continuations"][0].numpy(),
    ]
    assert found["words"][8].numpy().tolist() == found["words"][0].numpy().tolist()
    assert not any(found["problems"].numpy())


@pytest.mark.slow
def test_a_translator_answers_examples_and_scores_their_targets(translator):
    translator, model = translator
    sources, targets = [*SENTENCES, b"the cat"], [*SENTENCES[::-1], b""]
    examples = [
        *serialize_examples({"source": sources, "target": targets}),
        *serialize_examples({"source": SENTENCES[1:2]}),
    ]
    found = {name: value.numpy() for name, value in translator.examples(examples).items()}
    best = translator.translate([*sources, SENTENCES[1]])["texts"].numpy()[:, 0]
    assert found["answers"].tolist() == best.tolist()
    vocabulary = translator.target.vocabulary
    for row, target in enumerate(targets):
        ids = [*vocabulary.ids(translator.target.tokenizer.tokenize(target)), vocabulary.end_id]
        source, _ = translator.source.encode(sources[row : row + 1])
        before = np.array([[vocabulary.start_id, *ids[:-1]]], "int32")
        log_probs = model({"source": source, "target": before}).numpy()[0]
        expected = log_probs[np.arange(len(ids)), ids].astype("float64")
        assert found["lengths"][row] == len(ids)
        np.testing.assert_allclose(found["log_probs"][row, : len(ids)], expected, rtol=1e-4)
        np.testing.assert_allclose(found["perplexities"][row], np.exp(-expected.mean()), rtol=1e-4)
        words = [word.decode() for word in found["words"][row, : len(ids)]]
        assert words == [vocabulary.words([i]).numpy()[0].decode() for i in ids]
    assert found["lengths"][4] == 0 and found["perplexities"][4] == 0
    assert not any(found["problems"])


def feature(*values):
    if values and isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({}, "must have a feature `text` or `prompt`"),
        ({"texts": feature(b"the cat")}, "must have a feature `text` or `prompt`"),
        ({"text": feature()}, "must have a feature `text` or `prompt`"),
        ({"text": feature(b"a", b"b")}, "`text` must be one text, not 2"),
        ({"text": feature(b"a"), "prompt": feature(b"a", b"b", b"c")}, "`prompt` must be one text"),
    ],
)
def test_an_example_without_its_text_says_so_and_spoils_no_other(wrong, problem, text_model):
    (right,) = serialize_examples({"text": [b"the cat"], "prompt": [b"a dog"]})
    together = answers_to(text_model, [right, example(**wrong), right])
    alone = answers_to(text_model, [right])
    for row in (0, 2):
        assert_same_row(together, alone, row)
    assert problem in together["problems"][1].decode()
    assert together["answers"][1] == b"" and together["lengths"][1] == 0
    assert not together["log_probs"][1].any() and not any(together["words"][1])


def answers_to(module, examples):
    return {name: value.numpy() for name, value in module.examples(examples).items()}


@pytest.mark.slow
def test_a_pair_without_a_source_says_so(translator):
    found = answers_to(translator[0], serialize_examples({"target": [b"the cat"]}))
    assert found["problems"][0] == b"the example must have a feature `source`"
    assert found["answers"][0] == b"" and found["lengths"][0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [b"no example", example(text=feature(7))])
def test_what_is_no_example_is_an_error(wrong, text_model):
    (right,) = serialize_examples({"text": [b"the cat"]})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"parse|[Dd]ata type"):
        text_model.examples([right, wrong])


@pytest.mark.slow
def test_no_examples(text_model, translator):
    for module in (text_model, translator[0]):
        found = answers_to(module, tf.constant([], tf.string))
        assert all(value.shape[0] == 0 for value in found.values())
