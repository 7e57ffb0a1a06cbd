"""The REST interface answers, and refuses, as TensorFlow Serving's documentation and code do."""

import base64
import json

import numpy as np
import pytest

HALF = "/v1/models/small:predict"


def test_the_status_of_a_model(server):
    answer = server.get("/v1/models/small")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    status = {"error_code": "OK", "error_message": ""}
    expected = {"model_version_status": [{"version": "7", "state": "AVAILABLE", "status": status}]}
    assert answer.json() == expected
    for choice in ("/versions/7", "/labels/best"):
        assert server.get(f"/v1/models/small{choice}").json() == expected


def test_metadata_tell_the_signatures(server):
    answer = server.get("/v1/models/small/versions/7/metadata").json()
    assert answer["model_spec"] == {"name": "small", "signature_name": "", "version": "7"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert signatures["half"]["method_name"] == "tensorflow/serving/predict"
    assert signatures["half"]["inputs"] == {
        "x": {
            "dtype": "DT_FLOAT",
            "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False},
            "name": "half_x:0",
        }
    }
    assert signatures["several"]["inputs"]["weights"]["tensor_shape"]["dim"][1]["size"] == "3"
    assert server.get("/v1/models/small/metadata").json() == answer


@pytest.mark.parametrize(
    "request_, answer",
    [
        ({"signature_name": "half", "instances": [1.0, 2, 5]}, {"predictions": [2.5, 3.0, 4.5]}),
        ({"signature_name": "half", "inputs": [1.0, 0.2]}, {"outputs": [2.5, 2.1]}),
        ({"signature_name": "half", "inputs": {"x": [1e-45]}}, {"outputs": [2.0]}),
        (
            {"instances": ["a b", ""]},
            {
                "predictions": [
                    {"lengths": 2, "version": 7, "words": ["a", "b"]},
                    {"lengths": 0, "version": 7, "words": ["", ""]},
                ]
            },
        ),
        (
            {"inputs": ["a b"]},
            {"outputs": {"lengths": [2], "version": [7], "words": [["a", "b"]]}},
        ),
        ({"inputs": []}, {"outputs": {"lengths": [], "version": [], "words": []}}),
        ({"signature_name": "padded", "inputs": {"b64": "YQ=="}}, None),
        (
            {
                "signature_name": "several",
                "instances": [
                    {"text": {"b64": "/w=="}, "number": -2, "weights": [1, 2.5, 3]},
                    {"text": "é\0", "number": 3, "weights": [0, 0, 1e38]},
                ],
            },
            {
                "predictions": [
                    {
                        "raw_bytes": {"b64": "/w=="},
                        "sum": -13.0,
                        "text": "\N{REPLACEMENT CHARACTER}",
                    },
                    {"raw_bytes": {"b64": "w6kA"}, "sum": 3e38, "text": "é\0"},
                ]
            },
        ),
    ],
)
def test_predictions(server, request_, answer):
    received = server.predict(request_)
    if answer is None:
        assert received.status_code == 400  # a scalar, where there must be a batch
        assert "[]" in received.json()["error"]
    else:
        assert received.status_code == 200, received.text
        assert received.json() == answer


def test_numbers_that_json_has_not(server):
    text = '{"signature_name": "half", "instances": [NaN, Infinity, -Infinity]}'
    answer = server.post(HALF, data=text)
    assert answer.text == '{"predictions": [NaN, Infinity, -Infinity]}'


def test_floating_point_numbers_of_every_size(server):
    answer = server.predict({"signature_name": "narrow", "inputs": [1.5, 0.1]}).json()
    assert answer["outputs"] == {
        "brain": [1.5, 0.100097656],
        "half": [1.5, 0.099975586],
        "double": [1.5, float(np.float32(0.1))],
    }


def test_any_content_type_is_json(server):
    """As `curl -d` sends it."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    data = '{"signature_name": "half", "instances": [0]}'
    assert server.post(HALF, data=data, headers=headers).json() == {"predictions": [2.0]}


def test_classify_and_regress(server):
    body = {"signature_name": "classify", "examples": [{"x": 0.25}, {"x": [0.75]}, {}]}
    assert server.post("/v1/models/small:classify", body).json() == {
        "results": [
            [["cat", 0.25], ["cat", 0.75]],
            [["cat", 0.75], ["cat", 0.25]],
            [["cat", 0.0], ["cat", 1.0]],
        ]
    }
    body = {"signature_name": "regress", "context": {"x": 1.0}, "examples": [{}, {"x": 5.0}]}
    assert server.post("/v1/models/small:regress", body).json() == {"results": [2.5, 4.5]}


def of_half(**changes):
    return {"signature_name": "half", **changes}


BAD_VALUE = "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: "
REFUSED = {
    "no instances": (of_half(), "Missing 'inputs' or 'instances' key"),
    "both": (of_half(inputs=[1], instances=[1]), "expecting only one of 'inputs' or 'instances'"),
    "no list": (of_half(instances=1), "Excepting 'instances' to be an list/array"),
    "empty": (of_half(instances=[]), "No values in 'instances' array"),
    "unknown signature": (
        {"signature_name": "none", "instances": [1]},
        'Serving signature name: "none" not found in signature def',
    ),
    "signature is no string": (
        {"signature_name": 100},
        "not formatted correctly. 'signature_name' key must be a string value.",
    ),
    "string": (
        of_half(instances=["a"]),
        BAD_VALUE + 'JSON Value: "a" Type: String is not of expected type: float',
    ),
    "true": (
        of_half(instances=[True]),
        BAD_VALUE + "JSON Value: true Type: True is not of expected type: float",
    ),
    "null": (
        of_half(inputs=[None]),
        "JSON Value: null Type: Null is not of expected type: float",
    ),
    "object": (
        of_half(inputs=[{"a": 1}]),
        'JSON Value: {\n    "a": 1\n} Type: Object is not of expected type: float',
    ),
    "lossy": (
        of_half(inputs=[2**24]),
        "Cannot convert JSON value: 16777216 to float without loss of precision.",
    ),
    "too large": (of_half(inputs=[1e39]), "1e+39 to float without loss of precision."),
    "ragged": (
        of_half(instances=[[1], [2, 3]]),
        "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: "
        "Expecting tensor size: 1 but got: 2",
    ),
    "other shape": (
        of_half(instances=[[[1, 2]], [[1], [2]]]),
        "Expecting shape [1,2] but got: [2,1]",
    ),
    "ragged inside": (
        of_half(inputs=[[1], [2, 3]]),
        "Encountered list at unexpected size: 2 at level: 1 expected size: 1",
    ),
    "too shallow": (
        of_half(inputs=[[1], 2]),
        "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2",
    ),
    "too deep": (of_half(inputs=[1, [2]]), "Encountered list at unexpected level: 1 expected < 1"),
    "rank": (of_half(instances=[[1]]), "Input x has the shape [1, 1], which does not fit [-1]"),
    "mixed": (
        {"instances": ["a", {"texts": "b"}]},
        "Expecting value/list but got object at item 1 of input list",
    ),
    "mixed the other way": (
        {"instances": [{"texts": "b"}, "a"]},
        "Expecting object but got list at item 1 of input list",
    ),
    "plain list for several": (
        {"signature_name": "several", "instances": [1]},
        "instances is a plain list, but expecting list of objects as multiple input tensors",
    ),
    "plain inputs for several": (
        {"signature_name": "several", "inputs": [1]},
        "inputs is a plain value/list, but expecting an object as multiple input tensors",
    ),
    "unknown input": (
        {"instances": [{"text": "a"}]},
        "Failed to process element: 0 key: text of 'instances' list. Error: INVALID_ARGUMENT: "
        "JSON object: does not have named input: text",
    ),
    "missing input": (
        {"signature_name": "several", "instances": [{"text": "a", "number": 1}]},
        "keys must be equal to: number,text,weights",
    ),
    "missing column": (
        {"signature_name": "several", "inputs": {"text": ["a"], "number": [1]}},
        "Missing named input: weights in 'inputs' object.",
    ),
    "columns of different lengths": (
        {
            "signature_name": "several",
            "inputs": {"text": ["a", "b"], "number": [1], "weights": [[1, 2, 3]]},
        },
        "input tensors must have equal 0th-dimension size",
    ),
    "float for integer": (
        {"signature_name": "positive", "inputs": [1.0]},
        "JSON Value: 1.0 Type: Number is not of expected type: int64",
    ),
    "more than int64": (
        {"signature_name": "positive", "inputs": [2**63]},
        "is not of expected type: int64",
    ),
    "an operation fails": (
        {"signature_name": "positive", "inputs": [1, 0]},
        "all must be positive",
    ),
    "no base64": ({"instances": [{"b64": "%"}]}, "Unable to base64 decode"),
    "b64 of no string": ({"inputs": [{"b64": 1}]}, "not formatted correctly for base64 data"),
    "half a character": ({"inputs": ["\ud800"]}, "The surrogate pair in string is invalid"),
    "long text": ({"inputs": ["a" * 3001]}, "a string of 3001 bytes; at most 3000 are allowed"),
    "many rows": ({"instances": ["a"] * 51}, "There are 51 instances; at most 50 are allowed"),
    "many columns": ({"inputs": ["a"] * 51}, "has 51 rows; at most 50 are allowed"),
    "many values": (of_half(inputs=[[1] * 15] * 50), "at most 700 values are allowed"),
    "deep": ({"inputs": json.loads("[" * 40 + "1" + "]" * 40)}, "deeper than 32 levels"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_requests_are_told_what_is_wrong(server, case):
    document, message = REFUSED[case]
    answer = server.predict(document)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"instances", "JSON Parse error: "),
        (b'{"instances": ["a"}', "JSON Parse error: "),
        (b'["a"]', "Is not object"),
        (b'{"instances": ["\xff"]}', "JSON Parse error: Invalid encoding in string. at offset: 16"),
        (b'{"instances": ' + b"[" * 9000, "JSON Parse error: "),
        (b'{"instances": [' + b"1" * 5000 + b"]}", "JSON Parse error: "),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "Missing 'inputs' or 'instances' key"),
    ],
)
def test_bodies_that_are_no_request(server, body, message):
    answer = server.post(HALF, data=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    "method, path, status, message",
    [
        ("POST", "/v1/models/none:predict", 404, "Servable not found for request: Latest(none)"),
        (
            "POST",
            "/v1/models/small/versions/8:predict",
            404,
            "Servable not found for request: Specific(small, 8)",
        ),
        (
            "POST",
            "/v1/models/small/labels/none:predict",
            400,
            "Unrecognized servable version label: none",
        ),
        ("GET", "/v1/models/none", 404, "Could not find any versions of model none"),
        ("GET", "/v1/models/small/versions/8", 404, "Could not find version 8 of model small"),
        ("GET", "/v1/models/none/metadata", 404, "Servable not found for request: Latest(none)"),
        ("GET", "/v1/models", 400, "Missing model name in request."),
        ("GET", f"/v1/models/small/versions/{2**63}", 400, "Failed to convert version: "),
        ("GET", f"/v1/models/small/versions/{'9' * 5000}", 400, "Failed to convert version: "),
        ("POST", "/v1/models/small", 400, "Malformed request: POST /v1/models/small"),
        ("POST", "/v1/models/small:explain", 400, "Malformed request: POST "),
        ("GET", "/v1/models/small:predict", 400, "Malformed request: GET "),
        ("PUT", "/v1/models/small", 400, "Malformed request: PUT "),
        ("GET", "/v2/models/small", 404, "Not Found"),
        (
            "POST",
            "/v1/models/small:classify",
            400,
            "Expected classification signature method_name to be tensorflow/serving/classify. "
            "Was: tensorflow/serving/predict",
        ),
        (
            "POST",
            "/v1/models/small:regress",
            400,
            "Expected regression signature method_name to be tensorflow/serving/regress. "
            "Was: tensorflow/serving/predict",
        ),
    ],
)
def test_paths(server, method, path, status, message):
    verb = server.get if method == "GET" else server.post
    if method == "PUT":
        import requests

        answer = requests.put(server.url + path, timeout=60)
    elif method == "POST":
        answer = verb(path, {"instances": ["a"], "examples": [{}]})
    else:
        answer = verb(path)
    assert answer.status_code == status
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    "document, message",
    [
        ({}, "key 'examples' is expected and was not found"),
        ({"examples": {}}, "Expecting 'examples' value to be an list/array"),
        ({"examples": []}, "'examples' value is an empty array"),
        ({"examples": [1]}, "Example must be JSON object but got JSON Number"),
        ({"examples": [{"x": None}]}, "Feature: x has element with unexpected JSON type: Null"),
        ({"examples": [{"x": [[1]]}]}, "Feature: x has element with unexpected JSON type: Array"),
        ({"examples": [{"x": [1, 2.5]}]}, "Unexpected element type in feature: x"),
        ({"examples": [{"x": 2**63}]}, "Only int64 is supported."),
        ({"examples": [{"x": "a"}]}, "Data types don't match"),
        ({"examples": [{}] * 51}, "at most 50 are allowed"),
        ({"examples": [{}], "signature_name": "none"}, "No signature was found with the name"),
    ],
)
def test_examples_that_are_none(server, document, message):
    answer = server.post("/v1/models/small:classify", {"signature_name": "classify"} | document)
    assert answer.status_code == 400
    assert message in answer.json()["error"]


def test_a_body_that_is_too_large(server):
    answer = server.predict({"instances": ["a" * 25_000]})
    assert answer.status_code == 413
    assert "at most 20000 bytes are allowed" in answer.json()["error"]


def test_names_are_quoted_as_in_urls(server):
    assert server.get("/v1/models/%73mall").status_code == 200
    answer = server.get("/v1/models/no%20such%2Fmodel")
    assert answer.json() == {"error": "Could not find any versions of model no such/model"}


def test_bytes_come_and_go_as_base64(server):
    sent = base64.b64encode(bytes(range(256))).decode()
    row = {"text": {"b64": sent}, "number": 0, "weights": [0, 0, 0]}
    answer = server.predict({"signature_name": "several", "instances": [row]}).json()
    assert answer["predictions"][0]["raw_bytes"] == {"b64": sent}
