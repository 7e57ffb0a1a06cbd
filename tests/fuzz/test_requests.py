"""Any bytes in the place of a request: answered, or refused by the server's own errors."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import tensorflow as tf
from hypothesis import strategies as st
from tensorflow.core.protobuf import meta_graph_pb2

from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.models import Models, Version
from keras_drill.workbench.serving.predictions import Predictor
from keras_drill.workbench.serving.rest import RestApi
from tests.fuzz.damage import CHANGES, JSON, TEXTS, change, replace_inside
from tests.fuzz.fuzzed import fuzzed


def signature(method, **inputs):
    infos = {
        name: meta_graph_pb2.TensorInfo(
            dtype=tf.as_dtype(dtype).as_datatype_enum, tensor_shape=tf.TensorShape(shape).as_proto()
        )
        for name, (dtype, shape) in inputs.items()
    }
    return meta_graph_pb2.SignatureDef(
        inputs=infos, outputs=infos, method_name=f"tensorflow/serving/{method}"
    )


class Echo:
    """Answers a signature with its inputs."""

    async def run(self, servable, name, inputs, seconds):
        return dict(inputs)


SERVABLE = SimpleNamespace(
    name="small",
    version=7,
    signature_defs={
        "serving_default": signature("predict", text=("string", [None])),
        "several": signature(
            "predict", text=("string", [None]), x=("float32", [None, 3]), n=("int32", [None])
        ),
        "wide": signature("predict", x=("float64", None), n=("int64", None), is_so=("bool", None)),
        "narrow": signature("predict", x=("bfloat16", [None])),
        "classify": signature("classify", inputs=("string", [None])),
        "regress": signature("regress", inputs=("string", [None])),
    },
)
LIMITS = Limits(request_bytes=20_000, rows=5, text_bytes=30, values=20)


def make_api():
    models = Models("nowhere", executor=None)
    models._models["small"] = {7: Version(7, Path(), "AVAILABLE", servable=SERVABLE)}
    return RestApi(models, Predictor(Echo(), LIMITS), Metrics())


REQUESTS = [
    {"instances": ["a b", {"b64": "/w=="}]},
    {"signature_name": "several", "instances": [{"text": "a", "x": [1, 2.5, 3], "n": -2}]},
    {"signature_name": "several", "inputs": {"text": ["a"], "x": [[1, 2.5, 3]], "n": [7]}},
    {"signature_name": "wide", "inputs": {"x": [[0.5]], "n": 1 << 62, "is_so": [True, False]}},
    {"signature_name": "narrow", "instances": [1.5]},
    {"signature_name": "classify", "examples": [{"x": [1, 2]}], "context": {"y": 0.5}},
    {"signature_name": "regress", "examples": [{"x": "a"}, {"x": {"b64": "AA"}}]},
]
MORE = (10**400, 2**63, -(2**63) - 1, 1e300, 5e-324, "\ud800", [[[[]]]], {"b64": "?"}, {"b64": 7})
DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b'{"instances": ' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"instances": [' + b"9" * 5000 + b"]}", b'{"instances": [1e999, -0]}')  # fmt: skip
BODIES = st.one_of(
    TEXTS,
    st.sampled_from(DEEP),
    st.builds(
        lambda request, number, value, changes: change(
            json.dumps(replace_inside(json.loads(json.dumps(request)), number, value)).encode(),
            changes or (),
        ),
        st.sampled_from(REQUESTS),
        st.integers(0, 99),
        JSON | st.sampled_from(MORE),
        st.none() | CHANGES,
    ),
)
_PIECES = [
    *("/v1/models", "/small", "/versions/7", "/labels/a", "/metadata", ":predict", "/../", "//"),
    *("/%2e%2e/", "%00", "%0d%0a", "/versions/-1", "/versions/" + "9" * 5000, ":", "%", "%ff"),
]
PATHS = st.one_of(
    st.sampled_from(["predict", "classify", "regress"]).map("/v1/models/small:{}".format),
    st.sampled_from(_PIECES[2:]).map("/v1/models/small{}".format),
    st.lists(
        st.sampled_from(_PIECES) | st.text(max_size=3).map(lambda x: quote(x, errors="replace")),
        max_size=4,
    ).map("".join),
)
METHODS = st.sampled_from(["POST", "POST", "POST", "GET", "PUT"])


@fuzzed(150, body=BODIES, path=PATHS, method=METHODS)
def test_requests(folder, body, path, method):
    status, answer = asyncio.run(make_api().answer(method, path, body))
    assert status in (200, 400, 404, 501), (status, answer)
    assert json.loads(json.dumps(answer)) is not None
    assert status == 200 or len(answer["error"]) > 10
    assert len(json.dumps(answer)) < 40_000
