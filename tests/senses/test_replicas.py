import os
import subprocess
import sys

import keras
import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.distribute"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What one replica and two make of the same batches."""
    folder = tmp_path_factory.mktemp("replicas")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    for replicas in (1, 2):
        command = [sys.executable, "-m", "tests.senses.train_on_replicas", str(replicas)]
        subprocess.run([*command, folder / f"{replicas}.npz"], check=True, env=environment)
    return [dict(np.load(folder / f"{replicas}.npz")) for replicas in (1, 2)]


def test_two_replicas_count_every_token_once(runs):
    for run in runs:
        so_far = run["counted"][[0, 1, 2, 3, 4, 0, 1, 2, 3, 4]]
        expected = [
            so_far[i // 3 * 3 : i + 1].sum() for i in range(10)
        ]  # from the interval's start
        np.testing.assert_array_equal(run["counts"].sum(1), expected)
    np.testing.assert_array_equal(runs[0]["counts"], runs[1]["counts"])


def test_two_replicas_train_like_one(runs):
    one, two = runs
    assert one.keys() == two.keys()
    assert one["iteration"].tolist() == [3, 6, 9] and one["moves"].min() > 0
    for name in ("moves", "senses", "from_words", "to_words", "words_by_senses", "tokens"):
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-5, atol=1e-5, err_msg=name)
