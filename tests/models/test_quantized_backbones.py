"""Encoder–decoders and Transformers that `Model.quantize` has quantised."""

import contextlib
import warnings

import keras
import numpy as np
import pytest

from keras_drill import DrillOutput, LanguageModel, SequenceToSequence, TiedOutput
from keras_drill.decoding import BeamSearch, LanguageModelStep
from keras_drill.layers import (
    AdditiveScore,
    Attention,
    GeneralScore,
    MultiHeadSourceAttention,
)
from keras_drill.models import (
    RecurrentEncoderDecoder,
    Transformer,
    TransformerLanguageBackbone,
)

V, D = 31, 6
SOURCE = np.array([[3, 1, 4, 2], [5, 9, 0, 0], [6, 2, 6, 0]])
TARGET = np.array([[1, 5, 9, 2, 8], [1, 7, 0, 0, 0], [1, 3, 3, 3, 0]])
INPUTS = {"source": SOURCE, "target": TARGET}


def recurrent(attention=None, **options):
    return RecurrentEncoderDecoder(V, D, units=7, attention=attention, seed=3, **options)


BACKBONES = {
    "no attention": lambda: recurrent(bidirectional=False, num_layers=2),
    "general": lambda: recurrent(Attention(GeneralScore())),
    "fed back": lambda: recurrent(Attention(AdditiveScore(5)), input_feeding=True),
    "heads fed back": lambda: recurrent(MultiHeadSourceAttention(2, 3), input_feeding=True),
    "heads with one value": lambda: recurrent(MultiHeadSourceAttention(2, 3, shared_value=True)),
    "two vocabularies": lambda: recurrent(source_vocabulary_size=17, cell="gru"),
    "transformer": lambda: Transformer(V, D, num_layers=1, num_heads=2, feed_forward_dim=7, seed=3),
    "decoder": lambda: TransformerLanguageBackbone(
        V, D, 1, num_heads=2, feed_forward_dim=7, seed=3
    ),
}


def quantized_model(name, mode="int8", head=TiedOutput):
    """A model, quantised, and its outputs before."""
    backbone = BACKBONES[name]()
    kind, inputs = SequenceToSequence, INPUTS
    if name == "decoder":
        kind, inputs = LanguageModel, TARGET
    model = kind(backbone, head(V, embedding=backbone.embedding))
    before = keras.ops.convert_to_numpy(model(inputs))
    with warnings.catch_warnings():  # Keras tells which layers it cannot quantise
        warnings.simplefilter("ignore")
        model.quantize(mode)
    return model, inputs, before


def slow_but(fast, names):
    return [pytest.param(name, marks=[] if name in fast else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", slow_but(["general"], BACKBONES))
def test_what_was_quantised_is_loaded_as_it_was(name, tmp_path):
    model, inputs, before = quantized_model(name)
    modes = model.backbone.quantized_layers
    assert "embedding" in modes and len(modes) > 2
    after = keras.ops.convert_to_numpy(model(inputs))
    assert 0 < np.abs(after - before).max() < 0.03 * (before.max() - before.min())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.backbone.quantized_layers == modes
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(loaded(inputs)), after)
    again = type(loaded.backbone).from_config(loaded.backbone.get_config())
    assert again.quantized_layers == modes and again.get_config() == loaded.backbone.get_config()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["general", "fed back", "heads fed back", "transformer"])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_quantised_attention_decodes_as_it_reads(name, dtype, tmp_path):
    """One column after the other, in the precision of the model, from a model that was loaded."""
    keras.config.set_dtype_policy(dtype)
    with contextlib.ExitStack() as stack:
        stack.callback(keras.config.set_dtype_policy, "float32")
        model, inputs, before = quantized_model(name, head=DrillOutput)
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        after = keras.ops.convert_to_numpy(loaded(inputs)).astype("float32")
        before = before.astype("float32")
        width = (0.03 if dtype == "float32" else 0.06) * (before.max() - before.min())
        np.testing.assert_allclose(after, before, atol=width)
        step = LanguageModelStep(loaded)
        constants, state = step.begin({"source": SOURCE}, 3, 5)
        for column in range(5):
            hidden, state = step.read(TARGET[:, column], constants, state)
            found = keras.ops.convert_to_numpy(step.log_probs(hidden)).astype("float32")
            rows = TARGET[:, column] > 0
            np.testing.assert_allclose(found[rows], after[rows, column], atol=width)
        start = np.pad(np.ones((3, 1), "int32"), [(0, 0), (0, 6)])
        search = BeamSearch(3)
        beams = search(step, start, [1, 1, 1], inputs={"source": SOURCE}, end_token=2)
        assert np.isfinite(keras.ops.convert_to_numpy(beams.scores)).all()
