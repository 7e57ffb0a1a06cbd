"""Versions come and go under a running server."""

import asyncio
import concurrent.futures
import shutil
import threading
import time

import pytest

from keras_drill.workbench.serving import BatchingOptions, models
from keras_drill.workbench.serving.models import Models
from tests.workbench.serving.running import running
from tests.workbench.serving.small_models import write_model


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "base" / "small"
    folder.mkdir(parents=True)
    return folder


def states(server):
    answer = server.get("/v1/models/small").json()
    return {int(one["version"]): one["state"] for one in answer["model_version_status"]}


def answering(server, **choice):
    path = "".join(f"/{kind}s/{value}" for kind, value in choice.items())
    answer = server.post(f"/v1/models/small{path}:predict", {"instances": ["a b"]})
    return answer.json()["predictions"][0]["version"] if answer.ok else answer.json()["error"]


@pytest.mark.slow
def test_versions_come_and_go(folder):
    with running(folder.parent, labels={"small": {"first": 1}}, grpc_port=None) as server:
        assert server.get("/healthz").status_code == 503
        for version in (1, 2):
            write_model(folder, version)
            server.look()
            assert answering(server) == version
        assert server.get("/healthz").status_code == 200
        # One that cannot be loaded is told, and the one before it goes on.
        (folder / "3").mkdir()
        server.look()
        assert states(server) == {3: "END", 2: "AVAILABLE", 1: "AVAILABLE"}
        broken = server.get("/v1/models/small/versions/3").json()["model_version_status"][0]
        assert broken["status"]["error_code"] == "NOT_FOUND"
        assert "no saved_model.pb" in broken["status"]["error_message"]
        assert answering(server) == 2
        tries = [line for line in server.lines if "cannot be loaded" in line]
        server.look()
        assert [line for line in server.lines if "cannot be loaded" in line] == tries
        # It was still being copied: it is taken up when it is complete.
        shutil.rmtree(folder / "3")
        write_model(folder, 3)
        write_model(folder, 12)  # after 3: numbers, not words
        server.look()
        assert answering(server) == 12
        assert answering(server, version=3) == 3
        # The last two stay, and the one with a label.
        assert answering(server, label="first") == 1
        assert "Specific(small, 2)" in answering(server, version=2)
        assert states(server) == {12: "AVAILABLE", 3: "AVAILABLE", 2: "END", 1: "AVAILABLE"}
        # Taking back a version is to remove its folder.
        shutil.rmtree(folder / "12")
        server.look()
        assert answering(server) == 3
        assert answering(server, version=2) == 2
        shutil.rmtree(folder)
        server.look()
        assert answering(server) == "Servable not found for request: Latest(small)"
        assert server.get("/models").json() == {"models": [], "are_loading": False}


def test_models_that_are_being_loaded_are_no_missing_ones(folder, monkeypatch):
    """The page of a server that has just been started asks before there is one to show."""
    may_go_on, original = threading.Event(), models._loaded

    def loaded(*arguments):
        may_go_on.wait(300)
        return original(*arguments)

    monkeypatch.setattr(models, "_loaded", loaded)
    with running(folder.parent, grpc_port=None) as server:
        write_model(folder, 1)
        look = asyncio.run_coroutine_threadsafe(server.server.models.look(), server.loop)
        server.wait_for(lambda: server.get("/models").json()["are_loading"])
        assert server.get("/models").json()["models"] == []
        may_go_on.set()
        look.result(300)
        answer = server.get("/models").json()
        assert not answer["are_loading"] and [one["name"] for one in answer["models"]] == ["small"]
    assert Models(folder.parent, None).are_loading


def test_what_is_no_model_is_passed_over(folder):
    write_model(folder, 1)
    (folder / ".2.abc").mkdir()
    (folder / "latest").mkdir()
    (folder / "README.md").write_text("x")
    (folder.parent / ".hidden" / "1").mkdir(parents=True)
    (folder.parent / "a:b" / "1").mkdir(parents=True)
    (folder.parent / "empty").mkdir()
    (folder.parent / "README.md").write_text("x")
    with running(folder.parent, grpc_port=None) as server:
        assert [model["name"] for model in server.get("/models").json()["models"]] == ["small"]
        assert states(server) == {1: "AVAILABLE"}
        assert server.get("/v1/models/empty").status_code == 404


@pytest.mark.parametrize("content", [b"", b"no protocol buffer", None])
def test_a_file_that_is_no_saved_model(folder, content):
    write_model(folder, 1)
    damaged = write_model(folder, 2)
    if content is None:
        shutil.rmtree(damaged / "variables")
    else:
        (damaged / "saved_model.pb").write_bytes(content)
    with running(folder.parent, grpc_port=None) as server:
        assert states(server) == {2: "END", 1: "AVAILABLE"}
        assert answering(server) == 1


def test_a_request_under_way_keeps_its_version(folder):
    write_model(folder, 1)
    with (
        running(folder.parent, grpc_port=None) as server,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(server.predict, {"signature_name": "wait", "instances": [1.0]})
        server.wait_for(lambda: server.server.models.versions("small")[0].users)
        shutil.rmtree(folder / "1")
        server.look()
        assert states(server) == {1: "UNLOADING"}
        assert "Servable not found" in answering(server)
        assert waiting.result().json() == {"predictions": [1.0]}
        server.wait_for(lambda: states(server) == {1: "END"})


def test_no_request_is_lost_when_a_version_comes(folder):
    write_model(folder, 1)
    with (
        running(folder.parent, grpc_port=None) as server,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        asked = [pool.submit(answering, server) for _ in range(40)]
        write_model(folder, 2)
        server.look()
        asked += [pool.submit(answering, server) for _ in range(40)]
        answers = [one.result() for one in asked]
    assert set(answers) == {1, 2}
    assert answers[40:] == [2] * 40


def test_stopping_answers_what_is_under_way(folder):
    write_model(folder, 1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with running(folder.parent, grpc_port=None) as server:
            waiting = pool.submit(server.predict, {"signature_name": "wait", "instances": [0.5]})
            server.wait_for(lambda: server.server.models.versions("small")[0].users)
        assert waiting.result().json() == {"predictions": [0.5]}


def test_the_folder_may_be_away_for_a_while(folder):
    write_model(folder, 1)
    with running(folder.parent, grpc_port=None) as server:
        folder.parent.rename(folder.parents[1] / "away")
        server.look()
        assert answering(server) == 1
        assert "loaded models continue to serve" in server.lines[-1]


def test_a_new_version_is_seen_without_being_asked_for(folder):
    options = {"poll_seconds": 0.05, "batching": BatchingOptions(max_batch_size=1)}
    with running(folder.parent, grpc_port=None, **options) as server:
        write_model(folder, 5)
        start = time.monotonic()
        server.wait_for(lambda: answering(server) == 5)
        assert time.monotonic() - start < 20
