"""Every random layer of the package draws masks of its own on each replica."""

import json

import pytest

from tests.distribute.workers import run_workers


def masks(*arguments):
    return [json.loads(line) for line in run_workers("tests.distribute.masks", list(arguments))]


@pytest.mark.slow
def test_replicas_and_workers_draw_masks_of_their_own():
    (one,) = masks(["mirrored", "1"])
    (two,) = masks(["mirrored", "2"])
    workers = masks(["multi-worker"], ["multi-worker"])
    assert len(one) == 8 * 3 * 2
    for name in one:
        first, second = (worker[name] for worker in workers)
        assert one[name] == first != second, name
    for name in two:
        assert two[name] == [*workers[0][name], *workers[1][name]], name
        assert two[name] == two[name.replace("graph", "eager")], name
