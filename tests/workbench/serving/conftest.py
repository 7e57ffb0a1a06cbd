import pytest

from keras_drill.workbench.serving import Limits
from tests.workbench.serving.running import running
from tests.workbench.serving.small_models import write_model


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
