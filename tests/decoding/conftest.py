import pytest

from tests.decoding.tiny_models import awd_lstm_with_drill, stateful_gru_tied


@pytest.fixture(scope="package")
def model():
    return awd_lstm_with_drill()


@pytest.fixture(scope="package")
def stateful_model():
    return stateful_gru_tied()
