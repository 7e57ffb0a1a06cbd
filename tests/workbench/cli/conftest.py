import shutil

import pytest

from keras_drill.data.file_lock import file_lock
from keras_drill.workbench.cli.main import main
from tests.workbench.training.tiny import tiny_config, write_corpus


def train(folder, head):
    options = {"head_kind": head, "senses_interval": 13, "training_epochs": 1}
    file = folder / f"{head}.toml"
    file.write_text(tiny_config(folder / "text", **options).to_toml())
    assert main(["train", str(file), "--run", str(folder / head)]) == 0


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """The folder that `folder` copies: the first worker that needs it trains the runs."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "runs"
    folder.mkdir(exist_ok=True)
    with file_lock(folder / "lock"):
        if not (folder / "kerbs").exists():
            data = write_corpus(folder / "text")
            for path in data.iterdir():  # raw text, which is not warned of, with the same words
                path.write_text(path.read_text().replace(" .", "."))
            train(folder, "tied")
            train(folder, "kerbs")
    return folder


@pytest.fixture(scope="session")
def folder(shared_folder, tmp_path_factory):
    """Trained runs beside each other, `tied` and `kerbs`, and their configurations."""
    return shutil.copytree(shared_folder, tmp_path_factory.mktemp("own") / "runs")


@pytest.fixture(scope="session")
def drill_run(folder):
    """A third run in `folder`."""
    train(folder, "drill")
    return folder / "drill"


@pytest.fixture
def run_main(capsys):
    """Runs a command: its exit status, what it wrote, and what it said on standard error."""

    def run(*words):
        capsys.readouterr()
        return main([str(word) for word in words]), *capsys.readouterr()

    return run
