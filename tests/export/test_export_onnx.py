"""ONNX files give the log-probabilities of the model, and what cannot be converted is refused."""

import sys

import numpy as np
import pytest

import keras_drill
from keras_drill.data import Vocabulary, WhitespaceTokenizer
from keras_drill.export import ModelCard, export_onnx
from keras_drill.models import RecurrentEncoderDecoder, Transformer, TransformerLanguageBackbone

WORDS = ["<pad>", "<unk>", "<eos>", "<sos>", *"abcdefghi"]
V, D = len(WORDS), 14
CODER = WhitespaceTokenizer(), Vocabulary(WORDS)
SIZES = {"num_layers": 1, "num_heads": 2, "feed_forward_dim": 11}


def filled(model):
    random = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.5, size=variable.shape))
    return model


def translation_model(**options):
    backbone = Transformer(V, D, **SIZES, **options)
    return filled(
        keras_drill.SequenceToSequence(backbone, keras_drill.DrillOutput(V, backbone.embedding))
    )


def quantized_model():
    model = translation_model()
    model.quantize("int8")
    return model


def language_model():
    backbone = TransformerLanguageBackbone(V, D, **SIZES)
    head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=2 * V, embedding_dim=D)
    return filled(keras_drill.LanguageModel(backbone, head))


@pytest.mark.slow
@pytest.mark.parametrize("make_model", [translation_model, quantized_model, language_model])
def test_log_probabilities_are_those_of_the_model(make_model, tmp_path):
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = make_model()
    has_source = make_model is not language_model
    card = ModelCard("a", "A Transformer.", "unknown", "not stated", {}, {})
    folder = export_onnx(model, tmp_path / "a", CODER, CODER if has_source else None, card=card)
    files = {path.name for path in folder.iterdir()}
    prefixes = ("source_", "target_") if has_source else ("",)
    assert {"model.onnx", "model_card.md"} <= files
    assert {f"{p}{name}" for p in prefixes for name in ("tokenizer.json", "vocabulary.txt")} < files
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    names = ["source", "target"] if has_source else ["tokens"]
    assert [each.name for each in session.get_inputs()] == names
    random = np.random.default_rng(5)
    for batch, length in ((2, 3), (3, 7)):
        inputs = {
            name: random.integers(1, V, (batch, length + i)).astype("int32")
            for i, name in enumerate(names)
        }
        inputs[names[0]][0, -2:] = 0  # padding
        (found,) = session.run(None, inputs)
        expected = model(inputs if has_source else inputs["tokens"])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


REFUSED = {
    "recurrent": (
        lambda: keras_drill.SequenceToSequence(
            RecurrentEncoderDecoder(V, 5, units=7), keras_drill.SoftmaxOutput(V)
        ),
        "cannot convert recurrent layers; .* Received: RecurrentEncoderDecoder",
    ),
    "mixed precision": (
        lambda: translation_model(dtype="mixed_bfloat16"),
        "Received: compute_dtype='bfloat16'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_converted_is_refused(case, tmp_path):
    make_model, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        export_onnx(make_model(), tmp_path / "models", CODER, CODER)
    assert not (tmp_path / "models").exists()


def test_vocabularies_fit_the_model(tmp_path):
    other = WhitespaceTokenizer(), Vocabulary(WORDS[:-1])
    for name, coders in (("target", (other, CODER)), ("source", (CODER, other))):
        message = f"`{name}` must have .* the model's {V} words. Received: {V - 1} words"
        with pytest.raises(ValueError, match=message):
            export_onnx(translation_model(), tmp_path, *coders)
    with pytest.raises(ValueError, match="Received: source=None for a model with a source"):
        export_onnx(translation_model(), tmp_path, CODER)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-drill\[onnx\]'"):
        export_onnx(translation_model(), tmp_path, CODER, CODER)
