import keras
import numpy as np
import pytest

from keras_drill.optimizers import SequenceLengthSchedule


def test_clipped_steps_are_proportional_to_the_length():
    lengths = [7, 3, 5]
    schedule = SequenceLengthSchedule(2.0, lengths, sequence_length=7)
    optimizer = keras.optimizers.SGD(schedule, global_clipnorm=0.5)
    variable = keras.Variable(np.zeros(3, "float32"))
    before = np.zeros(3)
    for length in lengths + lengths[:1]:
        optimizer.apply([keras.ops.array([3.0, 0.0, 4.0])], [variable])
        step = np.asarray(variable) - before
        np.testing.assert_allclose(step, -2 * length / 7 * np.array([0.3, 0, 0.4]), rtol=1e-6)
        before = np.asarray(variable)


@pytest.mark.parametrize("rate", [30.0, keras.optimizers.schedules.ExponentialDecay(30.0, 11, 0.5)])
def test_config(rate):
    schedule = SequenceLengthSchedule(rate, np.array([7, 3, 5]), 7)
    optimizer = keras.optimizers.SGD(schedule)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    other = copy._learning_rate
    assert [float(other(i)) for i in range(5)] == [float(schedule(i)) for i in range(5)]


@pytest.mark.parametrize("lengths", [[], [3, 0], [[3]]])
def test_bad_lengths(lengths):
    with pytest.raises(ValueError, match=r"`lengths` must be a non-empty list .* Received"):
        SequenceLengthSchedule(1.0, lengths, 7)
