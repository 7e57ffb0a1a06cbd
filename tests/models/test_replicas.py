import os
import subprocess
import sys

import keras
import numpy as np
import pytest


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.distribute")
@pytest.mark.parametrize(
    "program",
    [
        "train_regularised_on_replicas",
        "train_sequences_on_replicas",
        "train_new_heads_on_replicas",
        "train_distillers_on_replicas",
    ],
)
def test_two_replicas_train_like_one(program, tmp_path):
    """Regularisers, AR and TAR, state, reported loss and metrics; the weights are not equal.
    Words of the model's own and posteriors of senses; sequences are not as long. Heads that are put
    on trained models, labels that are frozen, tables that are only looked up in, and words that are
    added. Students of teachers."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    for replicas in (1, 2):
        command = [sys.executable, "-m", f"tests.models.{program}"]
        arguments = [str(replicas), tmp_path / f"{replicas}.npz"]
        subprocess.run([*command, *arguments], check=True, env=environment)
    one, two = (dict(np.load(tmp_path / f"{replicas}.npz")) for replicas in (1, 2))
    assert one.keys() == two.keys() >= {"loss", "val_loss", "val_perplexity"}
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-4, atol=1e-5, err_msg=name)
