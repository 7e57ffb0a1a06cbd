"""Files of models and numbers that somebody else has written run nothing."""

import ast
import json
import pickle
import warnings
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.loaded_run import _best_model
from keras_drill.workbench.training.run_folder import RunFolder


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("ran"),)


def shell(where):
    """Configurations that would run something in the place of a layer or an activation."""
    command = f"import pathlib; pathlib.Path({str(where)!r}).touch()"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that lambdas are unsafe
        body = keras.saving.serialize_keras_object(lambda x: Path("ran").touch() or x)
    yield {
        "module": "keras.layers",
        "class_name": "Lambda",
        "config": {"name": "evil", "function": body},
        "registered_name": None,
    }
    yield body
    for module, name in (("builtins", "exec"), ("os", "system"), ("subprocess", "Popen")):
        yield {
            "module": module,
            "class_name": name,
            "config": {"args": command, "shell": True},
            "registered_name": None,
        }
        yield {
            "module": module,
            "class_name": "function",
            "config": name,
            "registered_name": name,
        }


def write_model(path, place, evil):
    """A language model, of which one part of the configuration is another."""
    model = keras_drill.LanguageModel(
        keras_drill.models.AWDLSTM(11, 7, 5, 1), keras_drill.OutputLayer(11)
    )
    model(np.zeros((2, 3), "int32"))
    path.parent.mkdir(exist_ok=True)
    model.save(path)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    config = json.loads(members["config.json"])
    part = config["config"]
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = evil
    members["config.json"] = json.dumps(config)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize(
    "place", [("backbone",), ("head",), ("head", "config", "label_encoder")], ids="/".join
)
def test_a_model_file_runs_nothing(place, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(tmp_path / "run")
    write_model(folder.model_file, place, list(shell(tmp_path / "ran"))[number])
    with pytest.raises(RunError, match=r"model\.keras cannot be loaded"):
        _best_model(folder)
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_with_pickles_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = CheckpointStore(tmp_path)
    store.save(2, {"a": np.zeros(3)}, {})
    path = tmp_path / "step-00000002" / "arrays.npz"
    np.savez(path, a=np.array([Evil()], dtype=object))
    with pytest.raises(RunError, match="damaged"):
        store.load(2)
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(RunError, match="damaged"):
        store.load(2)
    assert not (tmp_path / "ran").exists()


FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize("package", ["keras_drill", "pipelines"])
def test_nothing_in_the_sources_could(package):
    """No pickles, no code from texts, no archives that name their own paths, no shells."""
    for path in Path(package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not FORBIDDEN_MODULES & {name.split(".")[0] for name in names}, where
            if not isinstance(node, ast.Call):
                continue
            options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            called = ast.unparse(node.func)
            assert called not in FORBIDDEN_CALLS, where
            assert not called.endswith((".extractall", "yaml.load", "os.system")), where
            assert options.get("shell", "False") == "False", where
            if called.endswith("np.load"):
                assert options.get("allow_pickle") == "False", where
            if called.endswith("load_model"):
                assert options.get("safe_mode") == "True", where
