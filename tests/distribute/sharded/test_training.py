"""`fit` on meshes of eight devices ends where it ends on one."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.callbacks import NonMonotonicAveraging
from keras_drill.senses.policies import ThresholdPolicy
from tests.distribute.sharded.heads import (
    HEADS,
    MESHES,
    B,
    D,
    T,
    V,
    make_embedding,
    set_mesh,
)
from tests.docs.pages import PAGE_ON_JAX, run_code

pytestmark = pytest.mark.slow


def make_model(name, **arguments):
    keras.utils.set_random_seed(7)
    embedding = make_embedding(name)
    backbone = keras.Sequential(
        [embedding, keras.layers.LSTM(D, return_sequences=True, dropout=0.2, seed=1)]
    )
    head = HEADS[name](V, embedding, name="head", tile_size=11)
    model = keras_drill.LanguageModel(backbone, head, **arguments)
    model.build((B, T))
    model.compile(keras.optimizers.Adam(0.03, clipnorm=0.5), metrics=["accuracy"])
    return model


def data():
    rng = np.random.default_rng(3)
    tokens = rng.integers(0, V, (3 * B, T + 1))
    weights = np.where(rng.random((3 * B, T)) < 0.8, rng.uniform(0.5, 2, (3 * B, T)), 0)
    return tokens[:, :-1], tokens[:, 1:], weights.astype("float32")


def train(name, mesh, callbacks=(), epochs=3, **arguments):
    """A model, and what its training, its evaluation and its predictions were."""
    set_mesh(mesh)
    return train_here(name, callbacks, epochs, **arguments)


def train_here(name, callbacks=(), epochs=3, **arguments):
    model = make_model(name, **arguments)
    x, y, weights = data()
    history = model.fit(
        x, y, batch_size=B, epochs=epochs, sample_weight=weights, shuffle=False, verbose=0,
        validation_data=(x[:B], y[:B]), callbacks=list(callbacks),
    )  # fmt: skip
    found = {
        "history": {key: np.array(value) for key, value in history.history.items()},
        "evaluation": np.array(model.evaluate(x, y, B, sample_weight=weights, verbose=0)),
        "predictions": model.predict(x[:B], verbose=0),
        "weights": weights_of(model),
    }
    return model, found


def weights_of(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [np.asarray(v.value) for v in variables if "seed" not in v.path]


def assert_close(found, expected, path="", tolerance=1e-5):
    if isinstance(expected, dict | list):
        keys = expected if isinstance(expected, dict) else range(len(expected))
        for key in keys:
            assert_close(found[key], expected[key], f"{path}/{key}", tolerance)
        return
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=path)


@pytest.mark.parametrize(
    "name, arguments",
    [("softmax", {"label_smoothing": 0.1}), ("drill", {}), ("mixture", {}), ("kerbs", {})],
)
def test_fit(name, arguments):
    """Loss, accuracy, weights and slots after 9 steps; evaluation; predictions."""
    _, expected = train(name, None, **arguments)
    for mesh in MESHES[:2] if name == "softmax" else MESHES[1:2]:
        model, found = train(name, mesh, **arguments)
        assert_close(found, expected)
        table = model.head.embeddings.value
        assert table.addressable_shards[0].data.shape[0] * mesh[1] == table.shape[0]


def test_data_parallel():
    _, expected = train("tied", None)
    keras.distribution.set_distribution(keras.distribution.DataParallel())
    _, found = train_here("tied")
    assert_close(found, expected)


def test_senses_move_alike():
    """Senses of a tied KerBS that lie on different devices, and the slots of those that move."""
    results = []
    for mesh in (None, (2, 4)):
        callback = keras_drill.SenseReallocation(
            interval=2, policy=ThresholdPolicy(-3.5), momentum=0.5, moved_embedding="near"
        )
        model, found = train("tied_kerbs", mesh, [callback])
        results.append((found, np.asarray(model.head.allocation.sense_to_word)))
        moves = callback.history
    assert sum(len(record["senses"]) for record in moves) > 0
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert_close(results[1][0], results[0][0])


def test_averages_are_split_like_weights():
    results = []
    for mesh in (None, (2, 4)):
        callback = NonMonotonicAveraging(non_monotone_interval=0)
        callback.averaging = True
        _, found = train("tied", mesh, [callback])
        results.append(found)
        means = callback._means
    assert [m.value.sharding.spec[0] for m in means if m.shape[0] == V] == ["model", "model"]
    assert_close(results[1], results[0])


@pytest.mark.parametrize("saved_on, loaded_on", [((2, 4), None), (None, (1, 8)), ((1, 8), (2, 4))])
def test_models_are_loaded_on_other_meshes(tmp_path, saved_on, loaded_on):
    """With the optimizer, so that training goes on alike."""
    model, _ = train("drill", saved_on, epochs=1)
    x = data()[0]
    model.save(tmp_path / "model.keras")
    predictions = model.predict(x[:B], verbose=0)
    set_mesh(loaded_on)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_close(loaded.predict(x[:B], verbose=0), predictions)
    assert_close(weights_of(loaded), weights_of(model))


def test_the_documentation():
    run_code(PAGE_ON_JAX, {})


def test_half_precision():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        _, expected = train("drill", None, epochs=1)
        _, found = train("drill", (2, 4), epochs=1)
    finally:
        keras.config.set_dtype_policy("float32")
    np.testing.assert_allclose(
        found["history"]["loss"], expected["history"]["loss"], rtol=2e-2, err_msg="loss"
    )


def test_batches_that_devices_cannot_share_are_refused():
    set_mesh(MESHES[-1])
    model = make_model("tied")
    tokens, targets, _ = data()
    rows = keras.distribution.distribution().device_mesh.shape[0]
    for call in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=r"rows of every batch, .*Received: a batch"):
            call(tokens[: rows + 1], targets[: rows + 1], batch_size=rows, verbose=0)
    for call in (model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match=r"rows of every batch, .*Received: a batch"):
            call(tokens[: rows + 1], targets[: rows + 1])
