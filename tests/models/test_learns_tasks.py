"""Copy, reverse and sort: whole sequences right, with every model and every output layer."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import BeamSearch, LanguageModelStep
from keras_drill.layers import Attention
from keras_drill.models import RecurrentEncoderDecoder, Transformer

V, S, D, START, END = 15, 5, 32, 1, 2
TASKS = {
    "copy": lambda rows: rows,
    "reverse": lambda rows: rows[:, ::-1],
    "sort": lambda rows: np.sort(rows, axis=1),
}
BACKBONES = {
    "recurrent": lambda **k: RecurrentEncoderDecoder(
        V, D, units=48, cell="gru", attention=Attention(), seed=1, **k
    ),
    "recurrent, fed": lambda **k: RecurrentEncoderDecoder(
        V, D, units=48, cell="gru", attention=Attention(), input_feeding=True, seed=1, **k
    ),
    "Transformer": lambda **k: Transformer(
        V,
        D,
        num_layers=2,
        num_heads=4,
        feed_forward_dim=64,
        dropout=0.0,
        norm_first=True,
        seed=1,
        **k,
    ),
}
HEADS = {
    "softmax": lambda e: keras_drill.SoftmaxOutput(V),
    "tied": lambda e: keras_drill.TiedOutput(V, e),
    "bilinear": lambda e: keras_drill.BilinearOutput(V, e),
    "dual nonlinear": lambda e: keras_drill.DualNonlinearOutput(V, e, units=D),
    "DRILL": lambda e: keras_drill.DrillOutput(V, e, depth=2),
    "mixture": lambda e: keras_drill.MixtureOfSoftmaxes(V, e, num_mixtures=3),
    "KerBS": lambda e: keras_drill.KernelizedBayesianSoftmax(V, e),
}


def pairs(task, size, seed):
    """Sources without padding, and labels that end."""
    source = np.random.default_rng(seed).integers(3, V, (size, S)).astype("int32")
    labels = np.concatenate([TASKS[task](source), np.full((size, 1), END)], axis=1).astype("int32")
    target = np.concatenate([np.full((size, 1), START), labels[:, :-1]], axis=1).astype("int32")
    return {"source": source, "target": target}, labels


def share_right(model, task, epochs):
    """Of sources that it has not seen, the share whose whole answer is right, by beam search."""
    batch_size = 64
    schedule = keras.optimizers.schedules.CosineDecay(0.005, epochs * 6400 // batch_size)
    model.compile(keras.optimizers.Adam(schedule, clipnorm=1.0), jit_compile=False)
    model.fit(*pairs(task, 6400, seed=1), batch_size, epochs, verbose=0)
    inputs, labels = pairs(task, 200, seed=2)
    buffer = np.zeros((200, S + 2), "int32")
    buffer[:, 0] = START
    beams = BeamSearch(num_beams=2)(
        LanguageModelStep(model),
        buffer,
        np.ones(200, int),
        inputs={"source": inputs["source"]},
        end_token=END,
    )
    return (ops.convert_to_numpy(beams.tokens)[:, 0, 1:] == labels).all(axis=-1).mean()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", BACKBONES)
def test_models_learn(kind, task):
    keras.utils.set_random_seed(1)
    backbone = BACKBONES[kind]()
    model = keras_drill.SequenceToSequence(backbone, keras_drill.SoftmaxOutput(V))
    assert share_right(model, task, epochs=6) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_heads_learn(head):
    keras.utils.set_random_seed(1)
    options = {}
    if head == "KerBS":
        # From Keras' ±0.05 it would learn much later.
        options["embedding"] = keras_drill.SenseEmbedding(V, D, num_senses=31)
    backbone = BACKBONES["recurrent"](**options)
    model = keras_drill.SequenceToSequence(backbone, HEADS[head](backbone.embedding))
    assert share_right(model, "reverse", epochs=6) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["recurrent, fed", "Transformer"])
def test_it_learns_on_its_own_words(kind):
    keras.utils.set_random_seed(1)
    backbone = BACKBONES[kind]()
    model = keras_drill.SequenceToSequence(
        backbone,
        keras_drill.TiedOutput(V, backbone.embedding),
        scheduled_sampling=keras_drill.ScheduledSampling(
            keras_drill.optimizers.LinearSchedule(600, final_rate=0.3), seed=1
        ),
    )
    assert share_right(model, "reverse", epochs=6) >= 0.95
