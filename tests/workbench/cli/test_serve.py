"""`keras-drill serve`: what is said before anything is served."""

import sys

import pytest

from keras_drill.workbench.cli.main import main


@pytest.fixture
def models(tmp_path):
    (tmp_path / "models" / "cats" / "1").mkdir(parents=True)
    (tmp_path / "models" / "cats" / "1" / "saved_model.pb").touch()
    return tmp_path / "models"


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "SAVED_MODELS"),
        (("none",), "none, which does not exist"),
        (("models/cats",), "is the folder of one model; give the folder that contains it"),
        (("models/cats/1",), "is one version of a model"),
        (("models/cats/1/saved_model.pb",), "is a file"),
        (("models", "--port", "70000"), "--port must be at most 65535"),
        (("models", "--label", "cats:best"), "--label must be NAME:LABEL=VERSION"),
        (("models", "--batch-delay", "-1"), "--batch-delay must be above"),
        (("models", "--timeout", "0"), "--timeout must be above 0"),
    ],
)
def test_mistakes_are_told_at_once(models, words, message, monkeypatch, capsys):
    monkeypatch.chdir(models.parent)
    assert main(["serve", *words]) in (1, 2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("library", ["aiohttp", "tensorflow_serving"])
def test_missing_libraries_are_named(tmp_path, library, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, library, None)
    assert main(["serve", str(tmp_path), "--port", "0", "--grpc-port", "0"]) == 1
    assert "pip install 'keras-drill[serve]'" in capsys.readouterr().err
