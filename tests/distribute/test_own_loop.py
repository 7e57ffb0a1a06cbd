"""Loops of one's own, as the documentation writes them."""

import json

import numpy as np
import pytest

from tests.distribute.workers import run_workers


@pytest.mark.slow
def test_the_loop_of_the_documentation_trains_alike_on_one_and_two_replicas():
    one, two = (
        json.loads(run_workers("tests.distribute.own_loop", [[devices]])[0]) for devices in "12"
    )
    np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)
