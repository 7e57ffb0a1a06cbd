"""What workers tell each other: all learn it before one that knows it ends."""

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.distribute import strategy
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.training.workers import WorkerFailed, Workers


class Scripted(Workers):
    """The first of two workers; what the other gathers is given, an error where it has ended."""

    def __init__(self, *others):
        super().__init__(strategy("none"))
        self.number = 2
        self.others = list(others)

    def gather(self, values):
        other = self.others.pop(0)
        if isinstance(other, Exception):
            raise other
        return np.array([values, [other]], "float64")


GONE = tf.errors.UnavailableError(None, None, "gone")


def fail():
    raise ConfigError("my own")


@pytest.mark.parametrize("last", [0, GONE])
@pytest.mark.parametrize(
    ("ends", "error", "said"),
    [
        (
            lambda workers: workers.check_same("different texts", "mine"),
            RunError,
            "worker 1 has different texts",
        ),
        (lambda workers: workers.together(lambda: None), WorkerFailed, "worker 1 has failed"),
        (lambda workers: workers.together(fail), ConfigError, "my own"),
    ],
)
def test_who_ends_waits_for_the_other_to_know_why(ends, error, said, last):
    workers = Scripted(1, last)
    with pytest.raises(error, match=said), workers.detect_lost_workers():
        ends(workers)
    assert not workers.others


@pytest.mark.parametrize("last", [0, GONE])
def test_a_good_end_waits_too(last):
    workers = Scripted(0, last)
    with workers.detect_lost_workers():
        assert workers.together(lambda: 3) == 3
        assert workers.others == [last]
    assert not workers.others


def test_a_worker_that_is_lost_earlier_is_an_error():
    workers = Scripted(GONE, 0)
    with pytest.raises(RunError, match="has ended"), workers.detect_lost_workers():
        workers.together(lambda: None)
    assert workers.others == [0]


def test_one_worker_gathers_nothing():
    workers = Scripted()
    workers.number = 1
    with workers.detect_lost_workers():
        assert workers.together(lambda: 3) == 3
