"""Language models small enough to be recomputed at every step."""

import keras
import numpy as np
import pytest

from keras_drill.label_encoders import ResidualLabelEncoder
from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.gru_language_backbone import GRULanguageBackbone
from keras_drill.models.language_model import LanguageModel
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made import KernelizedBayesianSoftmax, MixtureOfSoftmaxes
from keras_drill.senses import SenseEmbedding

V = 23


def awd_lstm_with_drill(dtype=None):
    keras.utils.set_random_seed(3)
    backbone = AWDLSTM(V, embedding_dim=5, units=7, num_layers=2, dtype=dtype)
    label_encoder = ResidualLabelEncoder(depth=2, activation="tanh", dropout=0.3, dtype=dtype)
    return _built(backbone, label_encoder, dtype)


def stateful_gru_tied():
    """Carries its state from batch to batch in training."""
    keras.utils.set_random_seed(5)
    backbone = GRULanguageBackbone(
        V, embedding_dim=5, units=7, num_layers=2, stateful=True, batch_size=1
    )
    return _built(backbone)


def awd_lstm_with_kerbs():
    """Weighs the senses of a word by their posterior, inside its time loop."""
    keras.utils.set_random_seed(7)
    embedding = SenseEmbedding(V, 5, num_senses=53)
    backbone = AWDLSTM(V, embedding_dim=5, units=7, num_layers=2, embedding=embedding)
    return _with_uneven_senses(backbone, KernelizedBayesianSoftmax(V, embedding))


def gru_with_drill_and_kerbs():
    """Senses have labels that a network makes; input embeddings weigh them by their usage."""
    keras.utils.set_random_seed(11)
    embedding = SenseEmbedding(V, 5, num_senses=53, weighting="usage")
    backbone = GRULanguageBackbone(V, embedding_dim=5, units=7, num_layers=1, embedding=embedding)
    label_encoder = ResidualLabelEncoder(depth=1, activation="tanh", dropout=0.3)
    head = KernelizedBayesianSoftmax(V, embedding, label_encoder=label_encoder, use_bias=True)
    return _with_uneven_senses(backbone, head)


def gru_with_mixture():
    keras.utils.set_random_seed(13)
    backbone = GRULanguageBackbone(V, embedding_dim=5, units=7, num_layers=1, output_dim=11)
    return _filled(LanguageModel(backbone, MixtureOfSoftmaxes(V, backbone.embedding, 3)))


def skip_float16_heads_of_jax(uses_them):
    if uses_them and keras.backend.backend() == "jax":
        pytest.skip("JAX has no dot-product attention in float16 on CPUs")


def _with_uneven_senses(backbone, head):
    """Words have one to four senses, in no order, that are used more or less."""
    model = _filled(LanguageModel(backbone, head))
    random = np.random.default_rng(19)
    senses_per_word = np.resize([1, 3, 4, 1, 2, 3], V)  # 53 in all
    head.allocation.assign(random.permutation(np.repeat(np.arange(V), senses_per_word)))
    head.allocation.usage.assign(random.uniform(size=53))
    return model


def _built(backbone, label_encoder=None, dtype=None):
    head = OutputLayer(V, embedding=backbone.embedding, label_encoder=label_encoder, dtype=dtype)
    return _filled(LanguageModel(backbone, head))


def _filled(model):
    model(np.zeros((1, 1), dtype="int32"))
    random = np.random.default_rng(17)
    for variable in model.trainable_variables:  # distributions far from uniform
        variable.assign(random.normal(scale=0.9, size=variable.shape))
    return model
