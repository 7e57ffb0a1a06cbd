"""On Keras' JAX backend nothing of the core asks for TensorFlow."""

import os
import subprocess
import sys

import keras
import pytest

PROGRAM = """
import sys

sys.modules["tensorflow"] = None  # an import of it fails

import keras
import numpy as np

import keras_drill
from keras_drill.decoding import BeamSearch, LanguageModelStep, TopPSampler

words, file = 13, sys.argv[1]
backbone = keras_drill.models.AWDLSTM(words, embedding_dim=5, units=7, num_layers=1)
head = keras_drill.KernelizedBayesianSoftmax(words, num_senses=2 * words)
model = keras_drill.LanguageModel(backbone, head)
model.compile("adam", metrics=[keras_drill.metrics.Perplexity(), "accuracy"])
tokens = np.arange(12).reshape(3, 4)
reallocation = keras_drill.SenseReallocation(interval=1)
model.fit(tokens, tokens + 1, epochs=2, verbose=0, callbacks=[reallocation])
model.save(file)
again = keras.saving.load_model(file)
print(np.array_equal(model.predict(tokens, verbose=0), again.predict(tokens, verbose=0)))
step = LanguageModelStep(again)
prompts = np.array([[1, 0, 0], [2, 0, 0]])
sampled = TopPSampler(0.9)(step, prompts, lengths=[1, 1], seed=3)
beams = BeamSearch(num_beams=2, num_results=1)(step, prompts, lengths=[1, 1], end_token=0)
print(sampled.tokens.shape, beams.tokens.shape)

inputs = {"source": tokens, "target": tokens}
translator = keras_drill.SequenceToSequence(
    keras_drill.models.Transformer(words, 6, num_layers=1, num_heads=2, feed_forward_dim=11),
    keras_drill.DrillOutput(words, dropout=0.4),
)
translator.compile("adam")
print(np.isfinite(translator.train_on_batch(inputs, tokens)))
"""


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="TensorFlow is another backend")
def test_tensorflow_is_not_imported(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "model.keras")],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["True", "(2, 3) (2, 1, 3)", "True"]
