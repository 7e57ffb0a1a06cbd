"""Masks, weights and metrics where two replicas have unequal numbers of tokens."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.distribute")
def test_an_added_loss_trains_like_that_of_keras_and_metrics_count_every_token_once(tmp_path):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-m", "tests.output_layer.train_on_replicas"]
    subprocess.run([*command, tmp_path / "trained.npz"], check=True, env=environment)
    arrays = dict(np.load(tmp_path / "trained.npz"))
    fused = [name for name in arrays if name.startswith("fused/")]
    assert len(fused) == 8
    for name in fused:
        expected = arrays[name.replace("fused", "keras")]
        np.testing.assert_allclose(arrays[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)
    for head in ("tied", "mixture", "kerbs"):
        found, expected = arrays[f"figures/{head}"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=head)
