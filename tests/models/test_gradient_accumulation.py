"""Several small batches before each step of the optimizer, against one large batch."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from tests.models.test_sequence_to_sequence import V, make, make_data

pytestmark = pytest.mark.slow

K = 3
EVEN, UNEVEN = "as many words", "more and fewer words"


def batches_of(kind):
    """K batches of pairs; with a weight of 0 on some words of some batches only."""
    batches = [make_data(seed) for seed in range(K)]
    for number, (_, _, weights) in enumerate(batches):
        weights[:] = 1
        if kind == UNEVEN:
            weights[:, 2 + number :] = 0
    return batches


def together(batches):
    inputs, labels, weights = zip(*batches, strict=True)
    inputs = {name: np.concatenate([each[name] for each in inputs]) for name in inputs[0]}
    return inputs, np.concatenate(labels), np.concatenate(weights)


def step_of(reduction, batches, learning_rate=0.1):
    """What one step of the optimizer changes."""
    model = make("recurrent", reduction=reduction)
    before = [ops.convert_to_numpy(v) for v in model.trainable_variables]
    steps = len(batches) if len(batches) > 1 else None
    model.compile(keras.optimizers.SGD(learning_rate, gradient_accumulation_steps=steps))
    for inputs, labels, weights in batches:
        model.train_on_batch(inputs, labels, weights)
    return [
        ops.convert_to_numpy(v) - b for v, b in zip(model.trainable_variables, before, strict=True)
    ]


@pytest.mark.parametrize(
    ("reduction", "kind"),
    [
        ("mean_with_sample_weight", EVEN),
        ("sum_over_batch_size", EVEN),
        ("sum_over_batch_size", UNEVEN),  # divided by unmasked words, of which there are as many
    ],
)
def test_small_batches_are_one_large_batch(reduction, kind):
    batches = batches_of(kind)
    one = step_of(reduction, [together(batches)])
    for a, b in zip(step_of(reduction, batches), one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)


def test_sums_are_added_up_whatever_the_batches_hold():
    """Keras divides by the number of batches, which the learning rate takes back."""
    batches = batches_of(UNEVEN)
    one = step_of("sum", [together(batches)])
    for a, b in zip(step_of("sum", batches, learning_rate=0.1 * K), one, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_means_of_batches_weigh_batches_alike():
    batches = batches_of(UNEVEN)
    each = [step_of("mean_with_sample_weight", [batch]) for batch in batches]
    found = step_of("mean_with_sample_weight", batches)
    for a, *parts in zip(found, *each, strict=True):
        np.testing.assert_allclose(a, np.mean(parts, axis=0), rtol=1e-4, atol=1e-7)


def test_senses_move_after_whole_steps_of_the_optimizer():
    keras.utils.set_random_seed(1)
    senses = keras_drill.SenseEmbedding(V, 6, num_senses=67)
    backbone = keras_drill.models.RecurrentEncoderDecoder(V, 6, units=7, embedding=senses)
    model = keras_drill.SequenceToSequence(
        backbone, keras_drill.KernelizedBayesianSoftmax(V, senses)
    )
    model.compile(keras.optimizers.Adam(0.01, gradient_accumulation_steps=2))
    policy = keras_drill.senses.policies.ThresholdPolicy(-0.1)
    mover = keras_drill.SenseReallocation(interval=1, policy=policy)
    inputs, labels, _ = make_data(size=24)
    model.fit(inputs, labels, 6, callbacks=[mover], shuffle=False, verbose=0)  # four batches
    counted = (inputs["target"] != 0).sum(axis=-1)
    assert [record["iteration"] for record in mover.history] == [1, 2]
    tokens = [record["tokens"] for record in mover.history]
    assert tokens == [counted[:12].sum(), counted[12:].sum()]
    assert mover.history[0]["moves"] > 0
