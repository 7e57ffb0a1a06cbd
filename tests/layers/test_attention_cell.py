"""Attention around Keras' cells: against a loop written out, trained, saved, compiled."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.layers import (
    AdditiveScore,
    Attention,
    AttentionCell,
    AttentionRNN,
    MonotonicWindow,
    MultiHeadSourceAttention,
)

B, S, T, D_SOURCE, D_TARGET, H, SIZE = 3, 5, 7, 11, 13, 6, 2
CELLS = {
    "lstm": lambda: keras.layers.LSTMCell(H),
    "gru": lambda: keras.layers.GRUCell(H),
    "stacked": lambda: keras.layers.StackedRNNCells(
        [keras.layers.LSTMCell(5), keras.layers.GRUCell(H)]
    ),
}
ATTENTIONS = {
    "additive": lambda: Attention(AdditiveScore(4)),
    "general": Attention,
    "heads": lambda: MultiHeadSourceAttention(2, 3),
}


def make_model(kind, attention="additive", **options):
    keras.utils.set_random_seed(1)
    cell = AttentionCell(CELLS[kind](), ATTENTIONS[attention](), SIZE, **options)
    memory, target = keras.Input((None, D_SOURCE)), keras.Input((None, D_TARGET))
    mask = keras.Input((None,), dtype="bool")
    hidden = AttentionRNN(cell, return_sequences=True)(target, memory, memory_mask=mask)
    return keras.Model([memory, mask, target], hidden), cell


def make_data():
    rng = np.random.default_rng(2)
    memory, target = rng.normal(size=(B, S, D_SOURCE)), rng.normal(size=(B, T, D_TARGET))
    mask = np.arange(S) < np.array([[S], [2], [0]])
    return [memory.astype("float32"), mask, target.astype("float32")]


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("kind", CELLS)
def test_equals_the_loop_written_out(kind, attention):
    model, cell = make_model(kind, attention, activation=None)
    memory, mask, target = make_data()
    source = cell.attention.project(ops.convert_to_tensor(memory), ops.convert_to_tensor(mask))
    states, fed, expected = cell.cell.get_initial_state(B), np.zeros((B, SIZE), "float32"), []
    kernel = ops.convert_to_numpy(cell.dense.kernel)
    for t in range(T):
        x = ops.convert_to_tensor(np.concatenate([target[:, t], fed], axis=-1))
        output, states = cell.cell(x, states)
        context = ops.convert_to_numpy(cell.attention(output[:, None], source)[0])[:, 0]
        fed = np.concatenate([context, ops.convert_to_numpy(output)], axis=-1) @ kernel
        expected.append(fed)
    found = ops.convert_to_numpy(model([memory, mask, target]))
    np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_it_trains_and_is_saved(jit_compile, tmp_path):
    model, _ = make_model("lstm", "general" if jit_compile else "additive")
    model.compile(keras.optimizers.Adam(0.02), "mse", jit_compile=jit_compile)
    inputs = make_data()
    targets = np.random.default_rng(3).uniform(-0.5, 0.5, (B, T, SIZE))
    before = model.get_weights()
    losses = model.fit(inputs, targets, epochs=9, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    for variable, value in zip(model.trainable_variables, before, strict=True):
        assert (ops.convert_to_numpy(variable) != value).any(), variable.path
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params()
    np.testing.assert_allclose(
        loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0), atol=1e-6
    )


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="masks of Keras' RNN")
def test_states_of_an_encoder_and_padding_of_the_target():
    cell = AttentionCell(keras.layers.GRUCell(H), Attention(), SIZE)
    memory, _, target = make_data()
    rnn = AttentionRNN(cell, return_sequences=True, return_state=True)

    def run(length, **options):
        return rnn(target, memory, sequences_mask=np.arange(T) < [[length]] * B, **options)

    began = [ops.ones((B, H))]
    hidden, state, a, *source = run(T, initial_state=began)
    np.testing.assert_array_equal(hidden[:, -1], a)
    assert tuple(state.shape) == (B, H) and len(source) == 3
    np.testing.assert_allclose(run(3, initial_state=began)[2], hidden[:, 2], atol=1e-6)
    assert np.abs(ops.convert_to_numpy(run(T)[0] - hidden)).max() > 1e-3
    by_keras = keras.layers.RNN(cell, return_sequences=True)
    found = by_keras(target, initial_state=cell.start(ops.convert_to_tensor(memory)))
    np.testing.assert_allclose(found, run(T)[0], atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="TensorFlow takes masks")
def test_a_mask_that_keras_cannot_apply_is_refused():
    cell = AttentionCell(keras.layers.GRUCell(H), Attention(), SIZE)
    memory, _, target = make_data()
    with pytest.raises(ValueError, match="`sequences_mask` must be None"):
        AttentionRNN(cell)(target, memory, sequences_mask=np.ones((B, T), bool))


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="`cell` must have no dropout"):
        AttentionCell(keras.layers.LSTMCell(H, dropout=0.1), Attention(), SIZE)
    with pytest.raises(ValueError, match="`attention` must have no window"):
        AttentionCell(keras.layers.LSTMCell(H), Attention(window=MonotonicWindow(2)), SIZE)
    cell = AttentionCell(keras.layers.LSTMCell(H), Attention(), SIZE)
    with pytest.raises(ValueError, match="`initial_state` must be the output"):
        keras.layers.RNN(cell)(np.ones((B, T, D_TARGET), "float32"))
    with pytest.raises(ValueError, match="`cell` must be an AttentionCell"):
        AttentionRNN(keras.layers.LSTMCell(H))
    with pytest.raises(ValueError, match="`stateful` must be False"):
        AttentionRNN(cell, stateful=True)
