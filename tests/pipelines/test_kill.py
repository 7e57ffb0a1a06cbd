"""A pipeline that is killed at any moment, and started again, ends as one that was not."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from keras_drill.data import atomic
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from pipelines.command_line import main
from pipelines.components.verdict import Verdict
from pipelines.engine import artifact_store
from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.run_pipeline import run_pipeline
from tests.forked import import_everything, program
from tests.pipelines.corpora import tiny_task
from tests.pipelines.test_engine import files_in
from tests.pipelines.test_served_models import arguments
from tests.pipelines.toys import toy_pipeline

ROOT = pathlib.Path(__file__).parents[2]
RUN_TOYS = ROOT / "tests" / "pipelines" / "run_toys.py"


class Killed(BaseException):
    """What stands for SIGKILL: nothing of the program catches it."""


class KillAt:
    """Lets so many steps of writing be done, kills before the next one, and lets no more be done.

    A killed process does no cleaning up either, so after that removing kills as well. Of a file
    that is being written then, the first half is there.
    """

    def __init__(self, number):
        self.number = number
        self.done = 0

    def around(self, step):
        def stepped(*args, **kwargs):
            self.done += 1
            if self.done < self.number:
                return step(*args, **kwargs)
            if self.done == self.number and step.__name__ == "write_text":
                path, text = args
                path.write_bytes(text[: len(text) // 2].encode())
            raise Killed

        return stepped


def visible(folder):
    """Artifacts that can be seen under their names."""
    return list(folder.glob("artifacts/*/[!.]*"))


def toys():
    return toy_pipeline("cat", "l", "r", "e")


def run_until_killed(folder, kill, monkeypatch):
    with monkeypatch.context() as patch:
        for module, names in (
            (os, ("rename", "replace")),
            (shutil, ("rmtree",)),
            (pathlib.Path, ("write_text", "unlink")),
        ):
            for name in names:
                patch.setattr(module, name, kill.around(getattr(module, name)))
        try:
            run_pipeline(toys(), ArtifactStore(folder), force=["Left"])
        except Killed:
            return True
    return False


def test_killed_at_every_step_of_writing(tmp_path, monkeypatch, capsys):
    run_pipeline(toys(), ArtifactStore(tmp_path / "whole"))
    whole = files_in(tmp_path / "whole")
    run_pipeline(toys()[:2], ArtifactStore(tmp_path / "begun"))
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "begun", folder)
        if not run_until_killed(folder, KillAt(number), monkeypatch):
            break
        for path in visible(folder):  # what can be seen is whole
            lineage = json.loads((path / "lineage.json").read_text())
            sizes = {name: entry["bytes"] for name, entry in lineage["files"].items()}
            assert {name: (path / name).stat().st_size for name in sizes} == sizes
        run_pipeline(toys(), ArtifactStore(folder))
        assert files_in(folder) == whole
    assert number > 40


def test_patched_names_are_those_that_write():
    assert atomic.os is artifact_store.os is os and artifact_store.shutil is shutil


def start(*words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_begin(process):
    """Waits until all is imported."""
    while "begin" not in (line := process.stdout.readline()):
        assert line, "the process ended too early"


def finish(process):
    """Waits for the end: the exit status."""
    process.communicate()
    return process.returncode


@pytest.mark.slow
def test_killed_for_good_at_20_random_moments(tmp_path):
    for name, words in (("whole", (0,)), ("torn", (0.1, 20))):
        process = start(RUN_TOYS, tmp_path / name, *words)
        said, _ = process.communicate()
        assert process.returncode == 0, said
    assert files_in(tmp_path / "torn") == files_in(tmp_path / "whole")
    records = [
        json.loads(path.read_text())
        for path in (tmp_path / "torn").glob("executions/*/execution.json")
    ]
    states = [record["state"] for record in records]
    assert states.count("running") == 0 and "killed" in states and "made" in states


@pytest.mark.slow
def test_the_data_half_killed_at_random_moments(tmp_path):
    config = tiny_task("language-model", tmp_path / "text")
    (tmp_path / "tiny.toml").write_text(config.to_toml())
    words = [tmp_path / "tiny.toml", "--data", config.data.path, "--until", "Transform",
             "--example_validator.allow", "max_duplicates",
             "--example_validator.allow", "max_in_train"]  # fmt: skip

    def data_half(name):
        folder = ["--folder", tmp_path / name]
        return program("pipelines.language_model", [*words, *folder], tmp_path / f"{name}.log")

    import_everything()
    began = time.monotonic()
    with data_half("whole") as whole:
        assert whole.wait() == 0, whole.said
    seconds = time.monotonic() - began
    for share in np.linspace(0.1, 0.9, 9):
        with data_half("torn"):
            time.sleep(share * seconds)
    with data_half("torn") as torn:
        assert torn.wait() == 0, torn.said
    assert files_in(tmp_path / "torn") == files_in(tmp_path / "whole")


@pytest.mark.slow
def test_kills_of_a_pipeline_from_text_to_a_served_model(tmp_path, kills):
    options = {
        "training_epochs": 12,
        "training_checkpoint_every": 3,
        "training_deterministic": True,
        "optimizer_learning_rate": 0.03,
    }

    def pipeline(folder):
        folder.mkdir(exist_ok=True)
        words = arguments("language-model", folder, **options)
        return program("pipelines.language_model", words, folder / "log")

    import_everything()
    began = time.monotonic()
    with pipeline(tmp_path / "whole") as whole:
        assert whole.wait() == 0, whole.said
    seconds = time.monotonic() - began
    random = np.random.default_rng()
    ended = [tmp_path / "torn-0"]
    for _ in kills:
        torn = ended[-1]
        with pipeline(torn) as killed:
            time.sleep(random.uniform(0, 0.3 * seconds))
        if killed.poll() == 0:
            ended.append(tmp_path / f"torn-{len(ended)}")
        for version in (torn / "saved_models").glob("toy/[!.]*"):
            assert names_in(version) == names_in(tmp_path / "whole" / "saved_models" / "toy" / "1")
    with pipeline(ended[-1]) as torn:
        assert torn.wait() == 0, torn.said
    for torn in ended:
        assert_same_models(tmp_path / "whole", torn)


@pytest.mark.slow
def test_killed_after_the_model_is_in_its_place(tmp_path, monkeypatch, capsys):
    options = {"training_epochs": 3, "training_deterministic": True, "optimizer_learning_rate": 0.1}

    def run(name):
        (tmp_path / name).mkdir(exist_ok=True)
        return main(
            "language-model",
            "small-tied",
            arguments("language-model", tmp_path / name, **options),
        )

    def killed(*args):
        raise Killed

    assert run("whole") == 0, capsys.readouterr()
    publish = ArtifactStore.publish
    for name, after in (("not-told", killed), ("told", lambda *args: [publish(*args), killed()])):
        with monkeypatch.context() as patch:
            patch.setattr(
                ArtifactStore,
                "publish",
                lambda *args, after=after: (after if args[2] == "pushed" else publish)(*args),
            )
            with pytest.raises(Killed):
                run(name)
        assert run(name) == 0, capsys.readouterr()
        assert_same_models(tmp_path / "whole", tmp_path / name)
        first, again = ArtifactStore(tmp_path / name / "store").all("verdict")
        assert Verdict.load(again.path).figures == Verdict.load(first.path).figures != {}


def names_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def assert_same_models(whole, torn):
    """The same artifacts, the same weights to the bit, and one served version of them.

    What is made of a model is named by the model's content, in which there are times. One that was
    killed after pushing has also a verdict that the model is already served.
    """
    stores = [whole / "store" / "artifacts", torn / "store" / "artifacts"]
    kinds = [Counter(path.parent.name for path in store.glob("*/*")) for store in stores]
    assert set(kinds[0].values()) == {1} and not kinds[0] - kinds[1]
    verdicts = [Verdict.load(path) for path in stores[1].glob("verdict/*")]
    again = [one for one in verdicts if one.baseline == 1]
    assert all("is already served, as version 1" in one.reasons[0] for one in again)
    allowed = [{"verdict": 1}, {"verdict": 1, "pushed": 1}] if len(again) == 1 else [{}]
    assert kinds[1] - kinds[0] in allowed
    names, others = ({path.name for path in store.glob("*/*")} for store in stores)
    assert {path.name for path in stores[0].glob("model/*")} <= names & others
    for kind in ("examples", "statistics", "schema", "transformed"):
        (path,) = stores[0].glob(f"{kind}/*")
        assert names_in(path) == names_in(stores[1] / kind / path.name)
    assert names_in(whole / "saved_models") == names_in(torn / "saved_models")
    weights = []
    for store in stores:
        (run,) = store.glob("model/*/run")
        weights.append([weight.numpy() for weight in LoadedRun.load(RunFolder(run)).model.weights])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_two_processes_and_ctrl_c(tmp_path):
    first = start(RUN_TOYS, tmp_path / "store", 60)  # longer than the second one takes to begin
    wait_for_begin(first)
    time.sleep(0.5)
    second = start(RUN_TOYS, tmp_path / "store", 0)
    assert "another execution is running in" in second.communicate()[0]
    first.send_signal(signal.SIGINT)
    first.communicate()
    [record] = (tmp_path / "store").glob("executions/*/execution.json")
    assert json.loads(record.read_text())["state"] == "interrupted"
    third = start(RUN_TOYS, tmp_path / "store", 0)
    assert finish(third) == 0
