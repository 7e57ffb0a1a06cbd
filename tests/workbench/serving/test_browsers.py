"""What browsers may do with the server, and what they are told."""

import pytest
import requests

from keras_drill.workbench.serving.browsers import SameSite
from keras_drill.workbench.serving.errors import ServingError

OWN = "127.0.0.1:8501"


@pytest.mark.parametrize(
    "headers, refused",
    [
        ({"Host": OWN}, False),
        ({"Host": "localhost"}, False),
        ({"Host": "LOCALHOST.:80"}, False),
        ({"Host": "[::1]:8501"}, False),
        ({"Host": "192.168.1.7"}, False),
        ({"Host": "devbox:8501"}, False),
        ({"Host": OWN, "Origin": f"http://{OWN}"}, False),
        ({"Host": OWN, "Origin": f"http://{OWN}", "Sec-Fetch-Site": "same-origin"}, False),
        ({}, True),
        ({"Host": ""}, True),
        ({"Host": "["}, True),
        ({"Host": "rebound.example.com:8501"}, True),
        ({"Host": "localhost.example.com"}, True),
        ({"Host": OWN, "Origin": "null"}, True),
        ({"Host": OWN, "Origin": "http://127.0.0.1:9000"}, True),
        ({"Host": OWN, "Origin": "https://example.com"}, True),
        ({"Host": OWN, "Sec-Fetch-Site": "cross-site"}, True),
        ({"Host": OWN, "Sec-Fetch-Site": "same-site"}, True),
    ],
)
def test_who_may_ask(headers, refused):
    same_site = SameSite(["devbox"])
    if refused:
        with pytest.raises(ServingError) as caught:
            same_site.check(headers)
        assert caught.value.http_status == 403
    else:
        same_site.check(headers)


def test_other_sites_are_refused(server):
    headers = {"Origin": "https://example.com"}
    answer = server.post("/v1/models/small:predict", {"instances": ["a"]}, headers=headers)
    assert answer.status_code == 403
    assert "https://example.com" in answer.json()["error"]
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert server.get("/", headers={"Host": "example.com"}).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert server.get("/", headers=link).status_code == 200
    assert server.get("/models", headers=link).status_code == 403


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js", "/models", "/v1/models/small"])
def test_headers_of_every_answer(server, path):
    answer = server.get(path)
    assert answer.status_code == 200
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_what_the_page_can_be_asked(server):
    (model,) = server.get("/models").json()["models"]
    assert (model["name"], model["versions"]) == ("small", [7])
    assert model["signatures"]["several"] == ["number", "text", "weights"]
    assert "__saved_model_init_op" not in model["signatures"]


def test_metrics(server):
    server.predict({"instances": ["a"]})
    requests.get(f"{server.url}/v1/models/" + "x" * 50, timeout=20)
    answer = server.get("/monitoring/prometheus/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert any(
        line.startswith(':tensorflow:serving:request_count{model_name="small",status="OK"} ')
        for line in lines
    )
    assert "x" * 50 not in answer.text  # names of others are no labels
    assert sum(line.startswith("# TYPE") for line in lines) == 3
