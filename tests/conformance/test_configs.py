"""The config of a public object names each of its arguments, with its value."""

import inspect

import keras
import pytest

import keras_drill
from keras_drill import callbacks, decoding, metrics, scores
from keras_drill.senses import policies
from tests.conformance.public_layers import LAYERS, V, embedding

OTHERS = {
    "TopK": lambda: decoding.TopKSampler(3, 0.7),
    "TopP": lambda: decoding.TopPSampler(0.3, 0.7),
    "MinP": lambda: decoding.MinPSampler(0.3, 0.7),
    "Temperature": lambda: decoding.TemperatureSampler(0.7),
    "BeamSearch": lambda: decoding.BeamSearch(6, 0.7, 2, 3, 0.1, 0.3, True),
    "AddonsBeamSearch": lambda: decoding.AddonsBeamSearch(6, 0.7, 2, 3, 0.1, 0.3, True),
    "MinLength": lambda: decoding.MinLength(3),
    "RepetitionPenalty": lambda: decoding.RepetitionPenalty(1.3),
    "NoRepeatNGrams": lambda: decoding.NoRepeatNGrams(3),
    "BannedWords": lambda: decoding.BannedWords([3, [4, 5]]),
    "Ranking": lambda: policies.RankingPolicy(0.3),
    "Threshold": lambda: policies.ThresholdPolicy(-0.3),
    "Idle": lambda: policies.IdleSensePolicy(0.3),
    "KerBSKernel": lambda: scores.KerBSKernel("reference"),
    "TokenAccuracy": lambda: metrics.TokenAccuracy(3, "right"),
    "Perplexity": lambda: metrics.Perplexity("ppl"),
}


def arguments_of(thing) -> set[str]:
    parameters = inspect.signature(type(thing).__init__).parameters.values()
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)} - {
        "self"
    }


@pytest.mark.parametrize("name", [*LAYERS, *OTHERS])
def test_every_argument_is_in_the_config(name):
    made = OTHERS[name]() if name in OTHERS else LAYERS[name].make()
    assert arguments_of(made) <= set(made.get_config())


@pytest.mark.parametrize("name", OTHERS)
def test_values_come_back(name):
    config = OTHERS[name]().get_config()
    again = type(OTHERS[name]()).from_config(config)
    for argument in arguments_of(again):
        default = inspect.signature(type(again).__init__).parameters[argument].default
        assert config[argument] != default or argument == "dtype", argument
        if hasattr(again, argument) and argument != "dtype":
            assert getattr(again, argument) == config[argument]


def test_options_of_an_output_layer_come_back_and_stay_when_it_is_folded():
    options = {
        "use_bias": False,
        "logit_soft_cap": 7.0,
        "z_loss": 0.3,
        "tile_size": 11,
        "tile_bytes": 1 << 13,
        "pad_labels_to": V + 6,
    }
    head = keras_drill.OutputLayer(V, embedding_dim=5, name="words", dtype="bfloat16", **options)
    head(keras.ops.ones((2, 5)))
    again = keras_drill.OutputLayer.from_config(head.get_config())
    for made in (head, again, head.folded()):
        assert {name: getattr(made, name) for name in options} == options
        assert made.embedding_dim == 5 and made.name == "words"
        assert made.compute_dtype == "bfloat16"
    assert not head.folded().trainable and head.trainable


def test_defaults_of_callbacks_are_attributes():
    made = keras_drill.SenseReallocation(7, None, 0.3, "near", 5, embedding(), "logs")
    values = (made.interval, made.momentum, made.moved_embedding, made.seed, made.log_dir)
    assert values == (7, 0.3, "near", 5, "logs")
    averaging = callbacks.NonMonotonicAveraging("loss", 3)
    assert (averaging.monitor, averaging.non_monotone_interval) == ("loss", 3)
