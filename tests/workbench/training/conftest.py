import pytest

from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import train_run
from tests.workbench.training.tiny import write_corpus
from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def pairs(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("pairs") / "text")


@pytest.fixture(scope="session")
def trained(pairs, tmp_path_factory):
    """A run that was trained, evaluated and reported."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "trained")
    config = tiny_pairs_config(
        pairs, decoding_validation_sentences=5, decoding_best_by="chrf", training_epochs=2
    )
    train_run(config, folder)
    return folder


@pytest.fixture(scope="session")
def loaded(trained):
    return LoadedRun.load(trained)
