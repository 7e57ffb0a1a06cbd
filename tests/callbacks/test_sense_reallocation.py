import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.senses import SenseReallocator
from keras_drill.senses.policies import RankingPolicy, ThresholdPolicy

V, M, D, B, T, BATCHES = 13, 31, 11, 3, 7, 5
INTERVAL, MOMENTUM = 3, 0.3
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers and files"
)


def batches():
    """`[BATCHES * B, T]`; frequent words are low."""
    rng = np.random.default_rng(2)
    tokens = np.minimum(rng.geometric(0.2, (BATCHES * B, T + 1)) - 1, V - 1).astype("int32")
    return tokens[:, :-1], tokens[:, 1:]


def make_model(optimizer=None, **compile_options):
    keras.utils.set_random_seed(1)
    embedding = keras_drill.SenseEmbedding(V, D, M, weighting="usage")
    tokens = keras.Input((None,), dtype="int32")
    backbone = keras.Model(tokens, keras.layers.Dense(D, activation="tanh")(embedding(tokens)))
    head = keras_drill.KernelizedBayesianSoftmax(V, embedding=embedding)
    model = keras_drill.LanguageModel(backbone, head)
    options = {"jit_compile": keras.backend.backend() == "jax", **compile_options}
    model.compile(optimizer or keras.optimizers.Adam(0.03), **options)
    model.build((B, T))
    return model


def make_callback(**options):
    return keras_drill.SenseReallocation(
        **{
            "interval": INTERVAL,
            "policy": RankingPolicy(0.3),
            "momentum": MOMENTUM,
            "moved_embedding": "near",
            "seed": 17,
            **options,
        }
    )


def fit(model, callback, epochs=2, part=slice(None), **options):
    x, y = batches()
    return model.fit(
        x[part], y[part], B, epochs=epochs, shuffle=False, verbose=0, callbacks=[callback],
        **options,
    )  # fmt: skip


def state(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [np.array(ops.convert_to_numpy(variable)) for variable in variables]


def set_state(model, values):
    model.optimizer.build(model.trainable_variables)
    for variable, value in zip([*model.variables, *model.optimizer.variables], values, strict=True):
        variable.assign(value)


def assert_same(a, b):
    for found, expected in zip(a, b, strict=True):
        np.testing.assert_array_equal(found, expected)


def assert_same_history(a, b):
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.fixture(scope="module")
def whole():
    """Two epochs without interruption: final values, allocations and the history of `fit`."""
    callback, model = make_callback(), make_model()
    history = fit(model, callback).history
    return state(model), callback.history, history


@pytest.mark.slow
def test_fit_does_what_a_loop_of_ones_own_does(whole):
    expected, allocations, history = whole
    other = make_model()
    reallocator = SenseReallocator(
        other.head,
        other.optimizer,
        INTERVAL,
        RankingPolicy(0.3),
        MOMENTUM,
        moved_embedding="near",
        seed=17,
    )
    x, y = batches()
    for _ in range(2):
        for i in range(BATCHES):
            part = slice(i * B, (i + 1) * B)
            other.train_on_batch(x[part], y[part])
            reallocator.step()
    assert [record["iteration"] for record in allocations] == [3, 6, 9]
    assert [record["tokens"] for record in allocations] == [INTERVAL * B * T] * 3
    moves = [record["moves"] for record in allocations]
    assert history["sense_moves"] == [moves[0], moves[1] + moves[2]] and min(moves) > 0
    assert history["mean_senses"][-1] > 1
    assert_same(state(other), expected)
    assert_same_history(reallocator.history, allocations)


@pytest.mark.slow
def test_resume_in_the_middle_of_an_interval_is_exact(whole, tmp_path):
    expected, allocations, _ = whole
    first, model = make_callback(), make_model()
    fit(model, first, epochs=1, part=slice(4 * B))  # one step after an allocation
    saved = state(model)
    np.savez(tmp_path / "senses.npz", **first.get_state())

    second, resumed = make_callback(), make_model()
    set_state(resumed, saved)
    second.set_state(np.load(tmp_path / "senses.npz"))
    fit(resumed, second, epochs=1, part=slice(4 * B, None))
    fit(resumed, second, epochs=1)
    assert_same(state(resumed), expected)
    assert_same_history(second.history, allocations)


@pytest.mark.slow
def test_a_saved_model_goes_on_exactly(whole, tmp_path):
    model = make_model()
    fit(model, make_callback(), epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    callback = make_callback()
    fit(loaded, callback, epochs=2, initial_epoch=1)
    assert [record["iteration"] for record in callback.history] == [6, 9]
    assert_same(state(loaded), whole[0])


@pytest.mark.slow
def test_state_set_when_an_epoch_begins_counts():
    """As the training of runs does, which calls `fit` first."""
    saved = make_model()
    callback = make_callback()
    fit(saved, callback, epochs=1, part=slice(2 * B))

    model, again = make_model(), make_callback()
    model.optimizer.build(model.trainable_variables)

    class Restore(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            set_state(self.model, state(saved))
            again.set_state(callback.get_state())

    x, y = batches()
    model.fit(
        x[2 * B :], y[2 * B :], B, shuffle=False, verbose=0, callbacks=[Restore(), again]
    )  # iterations 3 to 5
    assert [record["iteration"] for record in again.history] == [3]


@pytest.mark.slow
@pytest.mark.parametrize("steps, acts_at", [(2, [4, 9]), (5, [5, 10])])
def test_several_steps_per_execution(steps, acts_at):
    # Epochs of 5 steps: executions end after 2, 4, 5, 7, 9, 10 or after 5, 10.
    callback = make_callback(interval=4)
    fit(make_model(steps_per_execution=steps), callback)
    assert [record["iteration"] for record in callback.history] == acts_at
    assert sum(record["tokens"] for record in callback.history) == acts_at[-1] * B * T


@pytest.mark.slow
def test_accumulated_gradients_count_as_one_iteration():
    optimizer = keras.optimizers.Adam(0.03, gradient_accumulation_steps=2)
    callback = make_callback(interval=2)
    fit(make_model(optimizer), callback)  # 10 steps, 5 iterations
    assert [record["iteration"] for record in callback.history] == [2, 4]


@pytest.mark.slow
@on_tensorflow
def test_allocation_changes_under_xla():
    callback = make_callback()
    model = make_model(jit_compile=True)
    fit(model, callback)
    assert [record["iteration"] for record in callback.history] == [3, 6, 9]
    assert all(record["moves"] for record in callback.history)
    x, y = batches()
    log_probs = model.head.log_prob(model.backbone(x), y)
    materialised = np.take_along_axis(model.predict(x, verbose=0), y[..., None], -1)[..., 0]
    np.testing.assert_allclose(ops.convert_to_numpy(log_probs), materialised, rtol=1e-4)


@pytest.mark.slow
@on_tensorflow
def test_tensorboard_files(tmp_path):
    from tensorflow.core.util import event_pb2
    from tensorflow.data import TFRecordDataset

    sizes = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))

    x, y = batches()
    callbacks = [make_callback(log_dir=tmp_path), Watch()]
    make_model().fit(x, y, B, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
    (path,) = tmp_path.glob("events.*")
    # Figures can be looked at before training ends: allocations are after steps 3, 6 and 9.
    assert sizes[1] == 0 < sizes[2] < sizes[5] < sizes[8]
    found = set()
    for record in TFRecordDataset(str(path)):
        event = event_pb2.Event.FromString(record.numpy())
        found |= {(event.step, value.tag) for value in event.summary.value}
    tags = ("sense_moves", "mean_senses", "senses_per_word", "theta")
    assert found == {(step, tag) for step in (3, 6, 9) for tag in tags}


class Steps:
    """Stands for a model in training: a head, and an optimizer that counts its steps."""

    def __init__(self):
        self.head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=M)
        self.head.build((None, D))
        self.optimizer = keras.optimizers.SGD(0.1)
        self.optimizer.build(self.head.trainable_variables)

    def run(self, callback, epochs, batches=2):
        """The logs of each epoch, as `fit` calls a callback."""
        tokens, told = np.arange(V), []
        callback.set_model(self)
        callback.on_train_begin()
        for epoch in range(epochs):
            callback.on_epoch_begin(epoch)
            for batch in range(batches):
                callback.on_train_batch_begin(batch)
                _, mask = self.head.allocation.columns(tokens)
                shares = ops.convert_to_numpy(mask) * np.geomspace(1, 7, mask.shape[1])
                shares = (shares / shares.sum(-1, keepdims=True)).astype("float32")
                self.head.allocation.record(tokens, -np.linspace(1, 4, V), shares)
                self.optimizer.iterations.assign_add(1)
                callback.on_train_batch_end(batch)
            told.append({})
            callback.on_epoch_end(epoch, told[-1])
        callback.on_train_end()
        return told


def test_its_arguments_are_those_of_the_reallocator():
    steps = Steps()
    callback = make_callback(head=steps.head)
    callback.set_model(steps)
    callback.on_train_begin()
    found = callback._reallocator
    assert (found.head, found.optimizer) == (steps.head, steps.optimizer)
    assert (found.interval, found.momentum, found.seed) == (INTERVAL, MOMENTUM, 17)
    assert found.policy is callback.policy and found.moved_embedding == "near"


def test_epochs_log_their_own_moves_and_the_mean_of_words_with_several_senses():
    steps = Steps()
    callback = make_callback(interval=3, policy=ThresholdPolicy(-1.5), head=steps.head)
    logs = steps.run(callback, epochs=3)
    moves = [record["moves"] for record in callback.history]
    assert [record["iteration"] for record in callback.history] == [3, 6] and min(moves) > 0
    assert [each["sense_moves"] for each in logs] == [0, moves[0], moves[1]]
    counts = np.bincount(ops.convert_to_numpy(steps.head.allocation.sense_to_word), minlength=V)
    assert logs[-1]["mean_senses"] == pytest.approx(counts[counts > 1].mean())
    again = make_callback()
    again.set_state(callback.get_state())
    assert_same_history(again.history, callback.history)
    assert again._num_logged == 2


def test_without_words_of_several_senses_their_mean_is_one():
    head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=V)
    head.build((None, D))
    steps, callback = Steps(), make_callback(head=head)
    callback.set_model(steps)
    callback.on_train_begin()
    logs = {}
    callback.on_epoch_end(0, logs)
    assert logs == {"sense_moves": 0, "mean_senses": 1.0}


def test_an_empty_history_survives_arrays():
    empty = make_callback()
    empty.set_state(make_callback().get_state())
    assert empty.history == []


def test_the_head_is_found_in_any_model():
    hidden = keras.Input((T, D))
    inner = keras_drill.KernelizedBayesianSoftmax(V)
    model = keras.Sequential([hidden, keras.Sequential([inner])])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, (_, y) = np.ones((B * BATCHES, T, D), "float32"), batches()
    callback = make_callback(interval=BATCHES)
    with pytest.warns(UserWarning, match="No tokens were counted"):  # a Keras loss
        model.fit(x, y, B, verbose=0, callbacks=[callback])
    assert callback.history[0]["moves"] == 0

    two = keras.Sequential([hidden, inner, keras.layers.Dense(D)])
    two.add(keras_drill.KernelizedBayesianSoftmax(V))
    two.compile("sgd", "sparse_categorical_crossentropy")
    for model in (two, keras.Sequential([hidden, keras_drill.OutputLayer(V)])):
        model.compile("sgd", "sparse_categorical_crossentropy")
        with pytest.raises(
            ValueError, match=r"one output layer with several .* Received: head=None, .*\["
        ):
            model.fit(x, y, B, verbose=0, callbacks=[make_callback()])
