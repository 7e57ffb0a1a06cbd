import pytest
from tensorflow.python.framework import config

from keras_drill.workbench.serving import Limits
from tests.workbench.serving.running import running
from tests.workbench.serving.small_models import write_model


@pytest.fixture(autouse=True, scope="package")
def clocks():
    """Lets graphs ask for the time, which the models here wait by.

    A training that an earlier test ran in this process may have asked for determinism; there is no
    public way to take that back.
    """
    config.disable_op_determinism()


@pytest.fixture(scope="package")
def small_model(tmp_path_factory):
    """One version, to be copied."""
    folder = tmp_path_factory.mktemp("models") / "small"
    folder.mkdir()
    return write_model(folder, 7)


@pytest.fixture(scope="package")
def server(small_model):
    limits = Limits(request_bytes=20_000, rows=50, text_bytes=3000, values=700, seconds=20)
    with running(small_model.parents[1], limits=limits, labels={"small": {"best": 7}}) as made:
        yield made
