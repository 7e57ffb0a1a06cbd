"""The command under load from another process, with a new version in the middle."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import requests

from tests.workbench.serving.exported import export_all
from tests.workbench.serving.small_models import write_model

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
TEXTS = ["", "the cat", "the cat sat on a mat .", "dog " * 40, "é ( ) unknown", "and\nthe dog\n"]
MEBIBYTE = 2**20


@contextlib.contextmanager
def served(base, *words):
    """The command, serving: its process and its URL. It must end well when it is told to."""
    command = [sys.executable, "-m", "keras_drill_command", "serve", base, "--port", "0", *words]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=base
    )
    lines = []
    reading = threading.Thread(target=lambda: lines.extend(iter(process.stderr.readline, "")))
    reading.start()
    try:
        wait_for(lambda: any("Ctrl-C" in line for line in lines), process)
        url = re.search(r"http://[\d.:]+", "".join(lines))[0]
        wait_for(lambda: requests.get(f"{url}/healthz", timeout=60).ok, process)
        yield process, url
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(60)
        finally:
            process.kill()
        reading.join()
    assert status == 0, lines
    assert "stopping" in lines[-1]


def wait_for(condition, process):
    end = time.monotonic() + 180
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)


def load(url, sent, folder):
    """What `benchmarks.serving_load` gets back, in a process of its own."""
    (folder / "requests").write_text("".join(json.dumps(one) + "\n" for one in sent))
    command = [sys.executable, "-m", "benchmarks.serving_load", url, "requests", "answers"]
    subprocess.run(command, check=True, cwd=folder, env=ENVIRONMENT)
    return [json.loads(line) for line in (folder / "answers").read_text().splitlines()]


def memory(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", text)[1]) * 1024


def good_and_bad_requests(count):
    """Requests of every size and signature, and after every five a bad one with its status."""
    good = [
        {"signature_name": signature, "instances": (TEXTS * 2)[start : start + rows]}
        for signature in ("continue", "score", "top_k", "serving_default")
        for rows in (1, 2, 5)
        for start in range(len(TEXTS))
    ]
    bad = [
        ("no JSON", 400),
        ('{"instances": [1]}', 400),
        ('{"instances": []}', 400),
        ('{"signature_name": "none", "instances": ["a"]}', 400),
        ('{"instances": [["a"], ["b", "c"]]}', 400),
        (json.dumps({"instances": ["a" * 100_000]}), 400),
        (json.dumps({"instances": ["a" * 5_000_000]}), 413),
    ]
    path = "/v1/models/words:predict"
    sent, statuses = [], []
    for index in range(count):
        if index % 6 == 5:
            body, status = bad[index // 6 % len(bad)]
        else:
            body, status = json.dumps(good[index % len(good)]), 200
        sent.append({"path": path, "body": body})
        statuses.append(status)
    return sent, statuses


def same(answer, expected):
    """Equal but for the rounding of numbers, which depends on the batch."""
    if isinstance(expected, dict):
        return answer.keys() == expected.keys() and all(
            same(answer[key], value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return len(answer) == len(expected) and all(map(same, answer, expected))
    return answer == (pytest.approx(expected, 1e-4) if isinstance(expected, float) else expected)


@pytest.mark.slow
def test_a_thousand_requests_and_a_new_version_in_the_middle(tmp_path):
    export_all(tmp_path / "made")
    base = tmp_path / "base"
    (base / "words").mkdir(parents=True)
    (tmp_path / "made" / "kerbs" / "1").rename(base / "words" / "1")
    new = (tmp_path / "made" / "mixture" / "1").rename(base / "words" / ".2.new")
    sent, statuses = good_and_bad_requests(1000)
    with served(base, "--no-grpc") as (_, url):
        newest = f"{url}/v1/models/words/versions/2"
        answers = load(url, sent[:100], tmp_path)
        new.rename(base / "words" / "2")
        while '"AVAILABLE"' not in requests.get(newest, timeout=60).text:
            assert len(answers) < 50_000
            answers += load(url, sent, tmp_path)
        answers += load(url, sent, tmp_path)
        expected = {
            version: {
                one["body"]: requests.post(
                    f"{url}/v1/models/words/versions/{version}:predict",
                    data=one["body"].encode(),
                    timeout=60,
                ).json()
                for one in {one["body"]: one for one in sent}.values()
            }
            for version in (1, 2)
        }
    of_version = {1: 0, 2: 0}
    asked = [*zip(sent, statuses, strict=True)]
    rounds = (len(answers) - 100) // 1000
    for (one, status), answer in zip(asked[:100] + asked * rounds, answers, strict=True):
        assert answer["status"] == status
        right = [
            version for version in (1, 2) if same(answer["answer"], expected[version][one["body"]])
        ]
        assert right, (one, answer)
        if len(right) == 1:
            of_version[right[0]] += 1
        if status != 200:
            assert answer["answer"].keys() == {"error"}
    assert min(of_version.values()) > 100
    assert of_version[2] > 500  # all of the last round


@pytest.mark.slow
def test_memory_stays_as_it_is(tmp_path):
    folder = tmp_path / "base" / "small"
    folder.mkdir(parents=True)
    write_model(folder, 1)
    path = "/v1/models/small:predict"
    good = [
        {"path": path, "body": json.dumps({"instances": ["a b c " * (index % 50 + 1)] * 3})}
        for index in range(997)
    ]
    bad = {"path": path, "body": json.dumps({"instances": ["a" * 5_000_000]})}
    with served(tmp_path / "base", "--no-grpc") as (process, url):
        load(url, [*good, bad, bad, bad], tmp_path)
        before = memory(process)
        for _ in range(3):
            load(url, [*good, bad, bad, bad], tmp_path)
        assert memory(process) - before < 16 * MEBIBYTE

        def publish(version):
            write_model(folder, version)
            shutil.rmtree(folder / str(version - 2), ignore_errors=True)
            loaded = f'"version": "{version}", "state": "AVAILABLE"'
            address = f"{url}/v1/models/small"
            wait_for(lambda: loaded in requests.get(address, timeout=60).text, process)

        for version in range(2, 6):
            publish(version)
        before = memory(process)
        for version in range(6, 16):
            publish(version)
        assert memory(process) - before < 32 * MEBIBYTE


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words in (["--port", port, "--no-grpc"], ["--port", "0", "--grpc-port", port]):
            result = subprocess.run(
                [sys.executable, "-m", "keras_drill_command", "serve", tmp_path, *map(str, words)],
                capture_output=True,
                text=True,
                env=ENVIRONMENT,
                timeout=120,
            )
            assert result.returncode == 1
            assert "cannot listen on 127.0.0.1" in result.stderr
