"""An input that depends on the last output, against the loop written out."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.layers import GRU, LSTM
from keras_drill.layers.output_feedback import OutputFeedback, feedback_sequence
from tests.gradients import value_and_gradients

T, B, D_KNOWN, D, H, H_LAST = 5, 3, 2, 7, 11, 13


class Fed(OutputFeedback):
    """`x_t = tanh(s_t + h_{t-1} A) f_t`: each step's own s, common weights A, fixed factors f."""

    def __init__(self, steps, fixed, weights):
        super().__init__(D, [steps], [fixed], [weights], [ops.zeros((B, D))])

    def value(self, output, steps, fixed, shared):
        activation = ops.tanh(steps[0] + ops.matmul(output, shared[0]))
        return activation * fixed[0], [activation]

    def gradient(self, d_x, output, steps, fixed, shared, residuals):
        d_sum = d_x * fixed[0] * (1 - residuals[0] ** 2)
        return ops.matmul(d_sum, ops.transpose(shared[0])), [d_sum]

    def shared_gradient(self, d_x, outputs, steps, fixed, shared, residuals):
        d_sum = d_x * fixed[0] * (1 - residuals[0] ** 2)
        return [ops.einsum("tbh,tbd->hd", outputs, d_sum)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("num_known", [0, D_KNOWN])
@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_values_and_gradients(kind, num_known, masked):
    random = np.random.default_rng(3)

    def normal(*shape):
        return ops.convert_to_tensor(random.normal(size=shape), dtype="float32")

    layers = [kind(H, time_major=True), kind(H_LAST, time_major=True)]
    layers[0].build((T, B, num_known + D))
    layers[1].build((T, B, H))
    weights = keras.Variable(normal(H_LAST, D))
    steps = keras.Variable(normal(T, B, D))
    known = keras.Variable(normal(T, B, max(num_known, 1)))
    kept = [normal(B, num_known + D), normal(B, H), normal(B, H_LAST)]
    fixed, rate = normal(T, B, D), normal(T, B, H_LAST)
    state = [normal(B, units) for units in (H, H_LAST) for _ in range(kind.num_states)]
    mask = None
    if masked:
        mask = ops.convert_to_tensor(np.arange(T)[:, None] < np.array([T, 2, 0]))

    def fast(rate):
        sequences = feedback_sequence(
            Fed(ops.add(steps, 0), fixed, ops.add(weights, 0)),
            layers,
            [layer.read_weights(training=True) for layer in layers],
            kept,
            mask,
            state,
            ops.add(known, 0) if num_known else None,
        )
        return ops.sum(sequences[-kind.num_states] * rate) + ops.sum(sequences[-1][-1])

    def literal(rate):
        now, total = list(state), 0
        for t in range(T):
            output = now[-kind.num_states] * kept[-1]
            x = ops.tanh(steps[t] + ops.matmul(output, weights)) * fixed[t]
            x = ops.concatenate([known[t], x], axis=-1) if num_known else x
            x, new = x * kept[0], []
            for i, layer in enumerate(layers):
                old = now[i * kind.num_states : (i + 1) * kind.num_states]
                _, *after = kind.call(layer, x[None], initial_state=old, training=True)
                if masked:
                    pairs = zip(after, old, strict=True)
                    after = [ops.where(mask[t][:, None], a, b) for a, b in pairs]
                new += after
                x = after[0] * kept[i + 1]
            now = new
            total = total + ops.sum(now[-kind.num_states] * rate[t])
        return total + ops.sum(now[-1])

    for layer in layers:
        layer.return_state = True
    variables = [weights, steps, *[v for layer in layers for v in layer.trainable_variables]]
    variables += [known] if num_known else []
    value, *gradients = value_and_gradients(fast, variables, rate)
    expected, *expected_gradients = value_and_gradients(literal, variables, rate)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for a, b in zip(
        [*gradients[0], gradients[1]],
        [*expected_gradients[0], expected_gradients[1]],
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)
