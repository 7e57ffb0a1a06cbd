import numpy as np
import pytest
from keras import ops

from keras_drill.label_encoders import ResidualNetwork

N, D, UNITS = 7, 5, 11


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("to_previous", [False, True])
def test_layers_of_another_width_than_the_input(to_previous, gated):
    network = ResidualNetwork(
        depth=3,
        units=UNITS,
        activation="tanh",
        residual_to_input=False,
        residual_to_previous=to_previous,
        gated=gated,
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D)).astype("float32")
    network.build(x.shape)
    shapes = [tuple(kernel.shape) for kernel in network.kernels]
    assert shapes == [(D, UNITS), (UNITS, UNITS), (UNITS, UNITS)]
    for variable in network.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    expected = x.astype("float64")
    for i in range(3):
        previous = expected
        kernel, bias = (ops.convert_to_numpy(w[i]) for w in (network.kernels, network.biases))
        expected = np.tanh(previous @ kernel + bias)
        if gated:
            expected = expected * ops.convert_to_numpy(network.gates[i])
        if to_previous and i > 0:
            expected = expected + previous
    np.testing.assert_allclose(ops.convert_to_numpy(network(x)), expected, rtol=1e-5, atol=1e-6)
    assert network.compute_output_shape((N, D)) == (N, UNITS)
