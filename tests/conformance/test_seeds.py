"""Two random layers of a model never have one seed: they would draw the same masks."""

import collections

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill import models
from keras_drill.ops.private_interfaces import all_layers
from tests.conformance.public_layers import LAYERS, D, V, embedding, example_input

SEEDS = (0, 1, 28)
RATE = 0.3


def random_states(layer):
    """By owner, the state of every seed generator in a layer."""
    found = {}
    for number, inner in enumerate(all_layers(layer)):
        for name, value in vars(inner).items():
            if isinstance(value, keras.random.SeedGenerator):
                found[f"{number}: {inner.name}.{name}"] = tuple(
                    ops.convert_to_numpy(value.state).astype("int64").tolist()
                )
    return found


def shared(layer):
    """The owners of each state that more than one seed generator has."""
    owners = collections.defaultdict(list)
    for owner, state in random_states(layer).items():
        owners[state].append(owner)
    return [names for names in owners.values() if len(names) > 1]


HEADS = {
    "drill": lambda seed: keras_drill.DrillOutput(
        V, embedding(), depth=2, dual=True, dropout=RATE, seed=seed
    ),
    "mixture": lambda seed: keras_drill.MixtureOfSoftmaxes(
        V, embedding(), num_mixtures=2, context_dropout=RATE, seed=seed
    ),
}
ATTENTION = {
    "num_heads": 1,
    "feed_forward_dim": 11,
    "attention_dropout": RATE,
    "activation_dropout": RATE,
}
BACKBONES = {
    "awd-lstm": lambda seed: models.AWDLSTM(V, D, 7, 3, seed=seed),
    "gru": lambda seed: models.GRULanguageBackbone(V, D, 7, 3, seed=seed),
    "recurrent": lambda seed: models.RecurrentEncoderDecoder(
        V, D, units=6, num_layers=3, dropout=RATE, bidirectional=True, seed=seed
    ),
    "transformer": lambda seed: models.Transformer(
        V, D, num_layers=3, dropout=RATE, seed=seed, **ATTENTION
    ),
    "transformer-language": lambda seed: models.TransformerLanguageBackbone(
        V, D, num_layers=3, dropout=RATE, seed=seed, **ATTENTION
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", HEADS)
def test_random_layers_of_a_head_have_seeds_of_their_own(name, seed):
    head = HEADS[name](seed)
    head(ops.ones((2, D)))
    assert random_states(head)
    assert not shared(head)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BACKBONES)
def test_random_layers_of_a_backbone_have_seeds_of_their_own(name, seed):
    backbone = BACKBONES[name](seed)
    tokens = np.ones((2, 3), "int32")
    needs_source = isinstance(backbone, models.Transformer | models.RecurrentEncoderDecoder)
    backbone({"source": tokens, "target": tokens} if needs_source else tokens)
    assert len(random_states(backbone)) > 3
    assert not shared(backbone)


@pytest.mark.parametrize("name", LAYERS)
def test_random_layers_of_every_public_layer_have_seeds_of_their_own(name):
    keras.utils.set_random_seed(1)
    layer = LAYERS[name].make()
    layer(example_input(LAYERS[name].kind))
    assert not shared(layer)


def test_both_networks_of_a_dual_encoder_drop_entries_of_their_own():
    encoder = keras_drill.ResidualLabelEncoder(
        dual=True, dropout=0.5, variational_dropout=True, residual_to_input=False, seed=3
    )
    encoder.build((V, 64), (None, 64))
    products = []
    for _ in range(20):
        masks = [
            network._drop(None, ops.ones((64, 1)), True)[1]
            for network in (encoder.label_network, encoder.hidden_network)
        ]
        products.append(float(ops.mean(masks[0] * masks[1])))
    # Masks are 0 or 2: their product has the mean 1 where they are independent, 2 where they agree.
    assert np.mean(products) == pytest.approx(1, abs=0.2)
