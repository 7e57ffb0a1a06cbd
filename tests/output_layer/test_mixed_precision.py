"""Every head under mixed precision, compiled by XLA: loss and gradients are those of float32."""

import keras
import numpy as np
import pytest

import keras_drill

V, D, H, N = 31, 13, 11, 7

HEADS = {
    "softmax": lambda **k: keras_drill.SoftmaxOutput(V, **k),
    "capped": lambda **k: keras_drill.OutputLayer(V, logit_soft_cap=5.0, z_loss=0.01, **k),
    "bilinear": lambda **k: keras_drill.BilinearOutput(V, embedding_dim=D, **k),
    "dual": lambda **k: keras_drill.DualNonlinearOutput(V, embedding_dim=D, units=5, **k),
    "drill": lambda **k: keras_drill.DrillOutput(V, depth=2, activation="tanh", **k),
    "mixture": lambda **k: keras_drill.MixtureOfSoftmaxes(V, embedding_dim=D, num_mixtures=3, **k),
    "kerbs": lambda **k: keras_drill.KernelizedBayesianSoftmax(V, num_senses=67, **k),
    "reference": lambda **k: keras_drill.KernelizedBayesianSoftmax(
        V, num_senses=67, variant="reference", **k
    ),
    "described": lambda **k: keras_drill.OutputLayer(
        V,
        label_encoder=keras_drill.DescriptionLabelEncoder(
            np.random.default_rng(1).normal(size=(V, D)), **k
        ),
        **k,
    ),
    "tied": lambda **k: keras_drill.TiedOutput(V, keras.layers.Embedding(V, H), **k),
    "tied senses": lambda **k: keras_drill.KernelizedBayesianSoftmax(
        V, keras_drill.SenseEmbedding(V, H, num_senses=67), **k
    ),
}
# Each is compiled for several seconds: one of each kind, the others where slow tests run.
QUICK = (("drill", "mixed_bfloat16"),)


def make(name, policy):
    head = HEADS[name](dtype=policy)
    head.build((None, H))
    for i, variable in enumerate(head.trainable_variables):
        values = np.random.default_rng(i).normal(size=variable.shape) * 0.7
        variable.assign(values.astype("bfloat16").astype("float32"))
    return head


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="jit_compile of tf.function")
@pytest.mark.parametrize(
    "name, policy",
    [
        pytest.param(name, policy, marks=() if (name, policy) in QUICK else pytest.mark.slow)
        for name in HEADS
        for policy in ("mixed_bfloat16", "mixed_float16")
    ],
)
def test_loss_and_gradients_are_those_of_float32(name, policy):
    import tensorflow as tf

    rng = np.random.default_rng(17)
    hidden = rng.normal(size=(N, H)).astype("bfloat16").astype("float32")
    targets, weights = rng.integers(0, V, N), rng.random(N).astype("float32")
    weights[2] = 0
    results = []
    for head in (make(name, "float32"), make(name, policy)):

        @tf.function(jit_compile=head.dtype_policy.name != "float32")
        def step(hidden, head=head):
            with tf.GradientTape() as tape:
                tape.watch(hidden)
                loss = head.loss(hidden, targets, weights, label_smoothing=0.1)
            wanted = [hidden, *(v.value for v in head.trainable_variables)]
            return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, wanted))]

        results.append(step(tf.constant(hidden)))
    for expected, found in zip(*results, strict=True):
        assert found.dtype == "float32" and np.isfinite(found).all()
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.03 * scale)
