"""The clients of the documentation against `keras-drill serve`, and what Docker is told."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.workbench.serving.exported import export_all
from tests.workbench.serving.running import running

FOLDER = Path(__file__).parents[3] / "docs" / "serving"


def run(client, *words):
    command = [sys.executable, FOLDER / client, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_both_clients_tell_the_same(tmp_path):
    export_all(tmp_path)
    texts = ["the cat", "", "é שלום"]
    with running(tmp_path) as server:
        rest = run("rest_client.py", server.url, "kerbs", *texts)
        grpc = run("grpc_client.py", server.grpc, "kerbs", *texts)
        refused = [
            run("rest_client.py", server.url, "none", "a"),
            run("grpc_client.py", server.grpc, "none", "a"),
        ]
        expected = server.predict({"signature_name": "continue", "instances": texts}, "kerbs")
    assert rest.returncode == grpc.returncode == 0, rest.stderr + grpc.stderr
    continued = [one["texts"] for one in expected.json()["predictions"]]
    assert rest.stdout.splitlines()[:3] == continued
    assert grpc.stdout.splitlines()[:4] == ["version 1 AVAILABLE", *continued]
    perplexities = re.findall("perplexity .*", rest.stdout)
    assert len(perplexities) == 3
    assert perplexities == re.findall("perplexity .*", grpc.stdout)
    assert refused[0].stderr.startswith("404: Servable not found for request: Latest(none)")
    told = refused[1].stderr.splitlines()[-1]  # after what TensorFlow says when it is imported
    assert told == "NOT_FOUND: Could not find any versions of model none"


def test_what_docker_is_told():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    (service,) = compose["services"].values()
    assert service["image"].startswith("tensorflow/serving:")
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    mounted = {}
    for volume in service["volumes"]:
        assert volume["read_only"]
        assert (FOLDER / volume["source"]).exists()
        mounted[volume["target"]] = volume["source"]
    assert mounted[service["environment"]["MODEL_BASE_PATH"]] == "../../saved_models"
    flags = dict(one.removeprefix("--").split("=") for one in service["command"])
    assert (
        flags.pop("enable_batching") == flags.pop("enable_per_model_batching_parameters") == "true"
    )
    assert flags.pop("monitoring_config_file") in mounted
    assert not flags
