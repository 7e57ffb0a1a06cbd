"""What the walk hands to XLA, for which shapes and values are no matter."""

import keras
import numpy as np
import pytest

from keras_drill.fused_loss import walk as tile_walk
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.losses import weighted_loss
from keras_drill.scores import InnerProduct, KerBSKernel

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers"
)


@pytest.mark.slow
@pytest.mark.parametrize("score", [InnerProduct(), KerBSKernel()])
def test_they_do_not_count_labels(score, monkeypatch):
    """On CPUs XLA does not vectorize exponentials beside a counter, and takes twice as long."""
    import tensorflow as tf

    monkeypatch.setattr(tile_walk, "FUSE_FROM_SCORES", 0)
    rng = np.random.default_rng(0)
    labels = tf.constant(rng.normal(size=(13, 5)), "float32")
    columns = tf.constant(rng.integers(0, 13, (7, 1)))
    parameters = () if score.is_linear else (tf.zeros(13),)

    @tf.function
    def loss(contexts):
        inputs = WalkInputs(contexts, None, labels, None, parameters, columns)
        return weighted_loss(inputs, WalkOptions(score))[0]

    graph = loss.get_concrete_function(tf.ones((7, 1, 5))).graph.as_graph_def()
    compiled = [f for f in graph.library.function if f.attr["_XlaMustCompile"].b]
    assert len(compiled) == (1 if score.is_linear else 2)
    for function in compiled:
        assert "Range" not in {node.op for node in function.node_def}
