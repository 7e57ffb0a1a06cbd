"""Gradients of gradients: refused by the fused loss, right without it."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from tests.gradients import value_and_gradients

V, D, N = 7, 3, 5


def squared_gradient(loss, hidden):
    """`|d loss / d hidden|^2`, differentiable once more."""
    if keras.backend.backend() == "jax":
        import jax

        return ops.sum(ops.square(jax.grad(loss)(hidden)))
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(hidden)
        value = loss(hidden)
    return ops.sum(ops.square(tape.gradient(value, hidden)))


@pytest.fixture(params=["inner product", "KerBS"])
def head(request):
    keras.utils.set_random_seed(0)
    if request.param == "inner product":
        head = keras_drill.OutputLayer(V)
        head.build((None, D))
        return head
    head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=11)
    head.build((None, D))
    head.score_parameters[0].assign(np.linspace(-2, 2, 11))
    return head


@pytest.mark.parametrize(
    "loss",
    [
        lambda head, hidden, targets: head.loss(hidden, targets),
        lambda head, hidden, targets: head.loss(hidden, targets, training=False),
        lambda head, hidden, targets: ops.sum(head.loss(hidden, targets, reduction="none")),
        lambda head, hidden, targets: ops.sum(head.log_prob(hidden, targets)),
    ],
    ids=["training", "inference", "token losses", "log_prob"],
)
def test_the_fused_loss_refuses_them(head, loss):
    targets = ops.arange(N) % V
    hidden = np.random.default_rng(0).normal(size=(N, D)).astype("float32")
    with pytest.raises(NotImplementedError, match="SparseCategoricalCrossentropy"):
        value_and_gradients(
            lambda hidden: squared_gradient(lambda h: loss(head, h, targets), hidden), [], hidden
        )


def test_log_probabilities_of_all_words_have_them(head):
    targets = ops.arange(N) % V
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    hidden = np.random.default_rng(0).normal(size=(N, D)).astype("float32")

    def function(hidden):
        return squared_gradient(lambda h: cross_entropy(targets, head(h)), hidden)

    _, _, gradient = value_and_gradients(function, [], hidden)
    for entry in ((0, 0), (1, 2), (4, 1)):
        step = np.zeros_like(hidden)
        step[entry] = 1e-2
        above, below = (function(ops.convert_to_tensor(hidden + s)) for s in (step, -step))
        slope = (float(above) - float(below)) / 2e-2
        np.testing.assert_allclose(gradient[entry], slope, rtol=2e-2, atol=1e-5)
