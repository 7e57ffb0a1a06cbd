import numpy as np
import pytest
from keras import ops

from keras_drill.label_encoders import (
    BilinearLabelEncoder,
    DualNonlinearLabelEncoder,
    ResidualLabelEncoder,
    ResidualNetwork,
)

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


@pytest.mark.parametrize("variational", [False, True])
def test_dropout_in_training_alone_and_of_whole_inputs_where_variational(variational):
    network = ResidualNetwork(
        activation="linear",
        dropout=0.4,
        variational_dropout=variational,
        residual_to_input=False,
        kernel_initializer="identity",
        seed=3,
    )
    x = np.ones((211, 31), "float32")
    np.testing.assert_allclose(network(x, training=False), x)
    dropped = ops.convert_to_numpy(network(x, training=True))
    kept = dropped > 0
    np.testing.assert_allclose(dropped[kept], 1 / 0.6, rtol=1e-4)
    assert (kept == kept[:1]).all() == variational
    assert 0.3 < kept[0].mean() < 0.9 and not kept.all()
    again = ops.convert_to_numpy(network(x, training=True))
    assert (again != dropped).any()


@pytest.mark.parametrize(
    "make",
    [
        BilinearLabelEncoder,
        lambda **options: DualNonlinearLabelEncoder(7, **options),
        lambda **options: ResidualLabelEncoder(dual=True, **options),
    ],
    ids=["bilinear", "dual", "residual"],
)
def test_networks_have_the_dtype_of_their_encoder(make):
    encoder = make(dtype="mixed_bfloat16")
    encoder.build((N, D), (None, D))
    for network in (encoder.label_network, encoder.hidden_network):
        if network is not None:
            assert (network.compute_dtype, network.variable_dtype) == ("bfloat16", "float32")
    assert encoder.hidden_network is not None
