"""Beam search on an encoder–decoder, whose beams share the encoded source."""

import itertools

import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import BeamSearch, LanguageModelStep
from keras_drill.layers import AdditiveScore, Attention, MonotonicWindow
from keras_drill.models import RecurrentEncoderDecoder, Transformer

V, L, START, END = 5, 4, 1, 2


def make_recurrent(**options):
    attention = Attention(AdditiveScore(5), MonotonicWindow(2))
    return RecurrentEncoderDecoder(V, 6, units=7, attention=attention, seed=3, **options)


BACKBONES = {
    "Transformer": lambda: Transformer(V, 6, num_layers=2, num_heads=2, feed_forward_dim=7, seed=3),
    "recurrent": make_recurrent,
    "recurrent with input feeding": lambda: make_recurrent(input_feeding=True, cell="gru"),
}


def make_model(kind):
    backbone = BACKBONES[kind]()
    model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, backbone.embedding))
    model.build({"source": (None, None), "target": (None, None)})
    rng = np.random.default_rng(4)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.5 * rng.normal(size=weight.shape))
    return model


def all_translations(model, source):
    """Every target with its log-probability, the best first, from whole sequences at once."""
    targets = np.array(list(itertools.product(range(1, V), repeat=L - 1)))  # no padding inside
    inputs = np.pad(targets[:, :-1], [(0, 0), (1, 0)], constant_values=START)
    sources = np.repeat(source[None], len(targets), axis=0)
    log_probs = ops.convert_to_numpy(model({"source": sources, "target": inputs}))
    words = np.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    found = {}
    for target, scores in zip(targets.tolist(), words, strict=True):
        count = target.index(END) + 1 if END in target else L - 1
        found[tuple(target[:count])] = scores[:count].sum()
    return sorted(found.items(), key=lambda item: -item[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", BACKBONES)
def test_a_wide_beam_finds_the_best_translations_of_every_source(kind):
    model = make_model(kind)
    sources = np.array([[3, 4, 2, 0, 0], [4, 4, 1, 3, 2], [2, 0, 0, 0, 0]])
    tokens = np.zeros((3, L))
    tokens[:, 0] = START
    beams = BeamSearch(num_beams=64)(
        LanguageModelStep(model),
        tokens,
        np.ones(3, int),
        inputs={"source": sources},
        end_token=END,
        forbidden_tokens=[0],
    )
    for row, source in enumerate(sources):
        for k, (target, log_prob) in enumerate(all_translations(model, source)[:9]):
            length = int(beams.lengths[row, k])
            found = ops.convert_to_numpy(beams.tokens[row, k, 1:length]).tolist()
            np.testing.assert_allclose(beams.log_probs[row, k], log_prob, atol=1e-4)
            assert tuple(found) == target
