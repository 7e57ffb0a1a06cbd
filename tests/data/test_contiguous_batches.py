import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_drill.data import ContiguousBatches

GRID = [
    pytest.param(n, batch_size, length, variable, padding, id=f"{n}-{batch_size}x{length}-{kind}")
    for n, batch_size, length in [(211, 3, 7), (2 * 5 * 11, 5, 11), (13, 13, 1)]
    for variable, padding, kind in [
        (False, False, "fixed"),
        (True, False, "variable"),
        (False, True, "padded"),
        (True, True, "variable-padded"),
    ]
]


def arrays(dataset):
    return [tuple(part.numpy() for part in element) for element in dataset]


def assert_equal(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("n", "batch_size", "length", "variable", "padding"), GRID)
def test_every_token_is_a_target_once_and_follows_its_input(
    n, batch_size, length, variable, padding
):
    ids = np.arange(1, n + 1)
    batches = ContiguousBatches(ids, batch_size, length, variable, padding, first_token=0)
    elements = arrays(batches.dataset(epoch=2))
    tokens = np.concatenate([element[0] for element in elements], axis=1)
    targets = np.concatenate([element[1] for element in elements], axis=1)
    weights = np.ones_like(targets)
    if padding:
        weights = np.concatenate([element[2] for element in elements], axis=1)
        assert batches.num_targets == n
    else:
        assert batches.num_targets == n - n % batch_size
    assert weights.sum() == batches.num_targets
    np.testing.assert_array_equal(targets[weights > 0], ids[: batches.num_targets])
    np.testing.assert_array_equal(tokens[weights > 0], ids[: batches.num_targets] - 1)
    np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])  # across windows too
    assert (targets[weights == 0] == 0).all()


@pytest.mark.parametrize(("n", "batch_size", "length", "variable", "padding"), GRID)
def test_number_and_shapes_are_known(n, batch_size, length, variable, padding):
    batches = ContiguousBatches(np.ones(n), batch_size, length, variable, padding)
    for epoch in range(2):
        dataset = batches.dataset(epoch)
        assert dataset.cardinality() == batches.num_batches
        elements = arrays(dataset)
        assert len(elements) == batches.num_batches
        assert [e[0].shape[1] for e in elements] == batches.lengths(epoch).tolist()
        static = length if padding and not variable else None
        for spec, part in zip(dataset.element_spec, elements[0], strict=True):
            assert spec.shape == (batch_size, static)
            assert spec.dtype == part.dtype
        if not variable:
            assert all(element[0].shape[1] == length for element in elements[:-1])
    assert batches.dataset(epochs=3).cardinality() == 3 * batches.num_batches


@pytest.mark.parametrize(("n", "batch_size", "length", "variable", "padding"), GRID)
def test_resumed_stream_is_the_uninterrupted_one(n, batch_size, length, variable, padding):
    ids = np.random.RandomState(5).randint(1, 97, n)
    batches = ContiguousBatches(ids, batch_size, length, variable, padding, seed=3)
    whole = arrays(batches.dataset(epoch=1, epochs=2))
    again = ContiguousBatches(ids, batch_size, length, variable, padding, seed=3)
    for done in (1, batches.num_batches):
        assert_equal(arrays(again.dataset(epoch=1, first_batch=done, epochs=2)), whole[done:])


@pytest.mark.parametrize(
    ("n", "batch_size", "length", "context", "variable"),
    [(211, 3, 7, 53, False), (211, 3, 7, 1, True), (13, 17, 2, 5, False), (97, 2, 5, 999, False)],
)
def test_every_target_is_predicted_from_the_context_that_is_asked_for(
    n, batch_size, length, context, variable
):
    ids = np.arange(1, n + 1)
    options = {"padding": True, "variable_length": variable, "first_token": 0}
    batches = ContiguousBatches(ids, batch_size, length, min_context=context, **options)
    tokens, targets, weights = (
        np.concatenate(parts, axis=1) for parts in zip(*arrays(batches.dataset()), strict=True)
    )
    np.testing.assert_array_equal(targets[weights > 0], ids)
    np.testing.assert_array_equal(tokens[:, 1:], targets[:, :-1])
    read = tokens[:, 0]  # a row reads on from its first token
    for row, column in np.argwhere(weights > 0):
        assert read[row] == 0 or targets[row, column] - 1 - read[row] >= context
    steps = batches.num_batches * length if not variable else batches.lengths().sum()
    assert tokens.shape == (batch_size, steps)
    last = arrays(batches.dataset(num_shards=batch_size, shard=batch_size - 1))
    np.testing.assert_array_equal(np.concatenate([t[0] for t, *_ in last]), tokens[-1])


@pytest.mark.slow
def test_variable_lengths_are_those_of_awd_lstm():
    batches = ContiguousBatches(np.zeros(4 * 70_001), 4, 70, variable_length=True, seed=1)
    epochs = [[e[0].shape[1] for e in arrays(batches.dataset(epoch))] for epoch in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    for lengths in map(np.array, epochs):
        assert sum(lengths) == 70_001
        assert lengths.min() >= 5
        assert abs(lengths.mean() - (0.95 * 70 + 0.05 * 35)) < 0.1
        assert 0.03 < (lengths < 52).mean() < 0.07
        assert 4 < lengths[lengths > 52].std() < 6
    other = ContiguousBatches(np.zeros(4 * 70_001), 4, 70, variable_length=True, seed=2)
    assert [e[0].shape[1] for e in arrays(other.dataset())] != epochs[0]


def test_lengths_are_the_same_everywhere():
    batches = ContiguousBatches(np.zeros(2 * 211), 2, 23, variable_length=True, seed=17)
    assert [e[0].shape[1] for e in arrays(batches.dataset(epoch=19))] == [
        29,
        33,
        24,
        21,
        22,
        35,
        24,
        10,
        13,
    ]


@pytest.mark.parametrize("steps", [1, 2, 5, 6, 11, 101])
@pytest.mark.parametrize("length", [1, 2, 5, 13])
def test_variable_lengths_of_tiny_texts(steps, length):
    if steps < length:
        pytest.skip("smaller than one batch")
    batches = ContiguousBatches(np.arange(3 * steps), 3, length, variable_length=True)
    for epoch in range(7):
        lengths = [e[0].shape[1] for e in arrays(batches.dataset(epoch))]
        assert sum(lengths) == steps
        assert min(lengths) >= 1


@pytest.mark.parametrize("padding", [False, True])
def test_shards_are_rows(padding):
    batches = ContiguousBatches(np.arange(1, 225), 6, 7, padding=padding)
    whole = arrays(batches.dataset())
    shards = [arrays(batches.dataset(num_shards=3, shard=shard)) for shard in range(3)]
    joined = [
        tuple(np.concatenate(parts) for parts in zip(*elements, strict=True))
        for elements in zip(*shards, strict=True)
    ]
    assert_equal(joined, whole)
    with pytest.raises(ValueError, match=r"`num_shards`.*Received: num_shards=4, shard=0"):
        batches.dataset(num_shards=4)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX traces each length")
def test_fit_knows_the_number_of_batches_and_traces_once():
    batches = ContiguousBatches(np.arange(1009) % 31, 3, 11, variable_length=True)
    traces = []

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.scores = keras.layers.Embedding(31, 31)

        def call(self, tokens):
            traces.append(tokens.shape)
            return self.scores(tokens)

    model = Model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=False)
    seen = []
    counter = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    model.fit(
        batches.dataset(epochs=3), epochs=3, steps_per_epoch=batches.num_batches,
        verbose=0, shuffle=False, callbacks=[counter],
    )  # fmt: skip
    assert seen == 3 * list(range(batches.num_batches))
    traces_of_one_epoch = len(traces)
    model.fit(batches.dataset(epoch=3), verbose=0, shuffle=False)
    assert len(traces) == traces_of_one_epoch


def test_too_small_a_text():
    message = r"has 104 tokens.*5 × 21 = 105.*lower `batch_size`.*Received: batch_size=5, seq"
    with pytest.raises(ValueError, match=message):
        ContiguousBatches(np.zeros(104), 5, 21)
    assert ContiguousBatches(np.zeros(105), 5, 21).num_batches == 1
    assert ContiguousBatches(np.zeros(1), 5, 21, padding=True).num_batches == 1
    with pytest.raises(ValueError, match="has 0 tokens"):
        ContiguousBatches(np.zeros(0), 5, 21, padding=True)


def test_wrong_arguments():
    for wrong in ({"min_context": -1, "padding": True}, {"min_context": 3}):
        with pytest.raises(ValueError, match="`min_context` must be an integer of at least 0"):
            ContiguousBatches(np.arange(12), 2, 3, **wrong)
    with pytest.raises(ValueError, match=r"`batch_size`.*Received: batch_size=0"):
        ContiguousBatches(np.zeros(5), 0, 1)
    with pytest.raises(ValueError, match=r"`sequence_length`.*Received: sequence_length=-1"):
        ContiguousBatches(np.zeros(5), 1, -1)
    with pytest.raises(ValueError, match=r"`seed`.*Received: seed=-1"):
        ContiguousBatches(np.zeros(5), 1, 1, seed=-1)
    with pytest.raises(ValueError, match=r"`first_batch`.*`num_batches`=5.*first_batch=6"):
        ContiguousBatches(np.zeros(5), 1, 1).dataset(first_batch=6)


@pytest.mark.slow
def test_each_replica_of_a_mirrored_strategy_gets_rows_of_its_own(tmp_path):
    program = """
import numpy as np, tensorflow as tf
from keras_drill.data import ContiguousBatches
device = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(device, 2 * [tf.config.LogicalDeviceConfiguration()])
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
batches = ContiguousBatches(np.arange(1, 229), 6, 7, variable_length=True, first_token=0)
rows = [[], []]
for tokens, _ in strategy.experimental_distribute_dataset(batches.dataset()):
    for replica, part in enumerate(strategy.experimental_local_results(tokens)):
        rows[replica].append(part)
rows = [tf.concat(parts, axis=1) for parts in rows]
assert tf.concat(rows, axis=0).numpy().tolist() == np.arange(228).reshape(6, 38).tolist()
print("every replica read its rows")
"""
    fresh = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert fresh.stdout == "every replica read its rows\n"


def test_the_end_of_the_text_comes_before_its_beginning_unless_told():
    tokens, _ = next(iter(ContiguousBatches([5, 7, 1, 9, 8, 1], 2, 3).dataset()))
    assert tokens.numpy().tolist() == [[1, 5, 7], [1, 9, 8]]
