import pytest

from keras_drill.workbench.cli.main import main
from tests.workbench.training.tiny import tiny_config, write_corpus


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Trained runs beside each other, `tied`, `drill` and `kerbs`, and their configurations."""
    folder = tmp_path_factory.mktemp("runs")
    data = write_corpus(folder / "text")
    for path in data.iterdir():  # raw text, which is not warned of, with the same words
        path.write_text(path.read_text().replace(" .", "."))
    for head in ("tied", "drill", "kerbs"):
        config = tiny_config(data, head_kind=head, senses_interval=13, training_epochs=1)
        (folder / f"{head}.toml").write_text(config.to_toml())
        assert main(["train", str(folder / f"{head}.toml"), "--run", str(folder / head)]) == 0
    return folder


@pytest.fixture
def run_main(capsys):
    """Runs a command: its exit status, what it wrote, and what it said on standard error."""

    def run(*words):
        capsys.readouterr()
        return main([str(word) for word in words]), *capsys.readouterr()

    return run
