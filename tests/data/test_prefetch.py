"""Items that are made ahead."""

import threading

import pytest

from keras_drill.data.prefetch import prefetch


def test_they_are_made_in_order_by_another_thread():
    threads = []

    def items():
        for number in range(7):
            threads.append(threading.current_thread())
            yield number

    assert list(prefetch(items(), ahead=3)) == list(range(7))
    assert len(set(threads)) == 1 and threading.current_thread() not in threads


def test_an_error_arrives_where_the_item_would():
    def items():
        yield 1
        yield 2
        raise OSError("the disk is gone")

    taken = prefetch(items())
    assert (next(taken), next(taken)) == (1, 2)
    with pytest.raises(OSError, match="the disk is gone"):
        next(taken)


def test_who_takes_no_more_waits_for_no_more():
    made = []
    taken = prefetch(made.append(number) or number for number in range(1000))
    assert next(taken) == 0
    taken.close()
    assert len(made) <= 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]
