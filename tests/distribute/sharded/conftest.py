import jax
import keras
import pytest

if len(jax.devices()) != 8:
    raise pytest.UsageError(
        "these tests need XLA_FLAGS=--xla_force_host_platform_device_count=8 in the environment: "
        "`make test-sharded` sees to that"
    )


@pytest.fixture(autouse=True)
def no_distribution_left():
    yield
    keras.distribution.set_distribution(None)
