"""Models that run on cuDNN here are exported for servers without it."""

import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_drill
from keras_drill.data import WordTokenizer
from keras_drill.decoding import LanguageModelStep
from keras_drill.export import export_saved_model
from keras_drill.layers import GRU, LSTM
from tests.export.checks import check_operations

V, D = 23, 5


@pytest.fixture
def model(monkeypatch):
    """Recurrent layers of both kinds, which believe that there is a GPU."""
    monkeypatch.setattr("keras_drill.layers.recurrent.has_cudnn", lambda: True)
    keras_rnn = sys.modules["keras.src.backend.tensorflow.rnn"]  # hidden by a function of its name
    monkeypatch.setattr(keras_rnn, "_is_gpu_available", lambda: True)
    embedding = keras.layers.Embedding(V, D)
    kinds = [LSTM, GRU, keras.layers.LSTM, keras.layers.GRU]
    layers = [kind(D, return_sequences=True) for kind in kinds]
    tokens = keras.Input((None,), dtype="int32")
    backbone = keras.Model(tokens, keras.Sequential(layers)(embedding(tokens)))
    model = keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(V, embedding=embedding))
    if not model.built:
        model.head.build((None, None, D))
    return model


def operations(graph):
    """Names of all operations of a concrete function and of those that it calls."""
    definition = graph.as_graph_def()
    names = {node.op for node in definition.node}
    return names | {
        node.op for function in definition.library.function for node in function.node_def
    }


@pytest.mark.slow
def test_an_exported_model_runs_without_a_gpu(model, vocabulary, tmp_path, monkeypatch):
    tokens = tf.TensorSpec([None, None], tf.int32)
    traced = tf.function(model.backbone.call).get_concrete_function(tokens)
    assert "CudnnRNNV3" in operations(traced.graph)  # what it would be
    # The look at causality runs the model, for which there is no cuDNN here.
    monkeypatch.setattr("keras_drill.decoding.PrefixReader._check_causality", lambda self: None)
    folder = export_saved_model(model, tmp_path, WordTokenizer(), vocabulary, max_new_tokens=3, k=2)
    check_operations(folder)
    answer = tf.saved_model.load(str(folder)).signatures["score"](tf.constant(["the cat", ""]))
    assert np.isfinite(answer["log_probs"]).all()
    traced = tf.function(model.backbone.call).get_concrete_function(tokens)
    assert "CudnnRNNV3" in operations(traced.graph)  # here nothing has changed
    assert LanguageModelStep(model).decodes_by == "prefix"


@pytest.mark.slow
def test_models_that_keras_exports_run_without_a_gpu(model, tmp_path):
    model.export(tmp_path / "export", verbose=False)
    tf.saved_model.save(model, str(tmp_path / "save"))
    for folder in ("export", "save"):
        loaded = tf.saved_model.load(str(tmp_path / folder))
        signature = loaded.signatures["serving_default"]
        assert "CudnnRNNV3" not in operations(signature.graph)
        (log_probs,) = signature(tf.zeros([2, 3], tf.int32)).values()
        assert np.isfinite(log_probs).all()
