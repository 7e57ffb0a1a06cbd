"""Requests that share a batch get the answers that they would get alone."""

import asyncio
import concurrent.futures
import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from keras_drill.workbench.serving import BatchingOptions, Limits
from keras_drill.workbench.serving.batching import Batcher, can_share
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.servable import read_signature_defs
from tests.workbench.serving.running import running

TEXTS = ["", "a", "b c d e f g", "é  x", "h i"]


def number_of_batches(server):
    text = server.get("/monitoring/prometheus/metrics").text
    name = ':tensorflow:serving:batching_session:processed_batch_size_count{model_name="small"}'
    return next(int(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def ask_all(server, documents):
    with concurrent.futures.ThreadPoolExecutor(len(documents)) as pool:
        return [answer.json() for answer in pool.map(server.predict, documents)]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_answers_do_not_depend_on_the_batch(small_model, size):
    documents = [
        {"instances": TEXTS[start:end]}
        for start in range(len(TEXTS))
        for end in range(start + 1, len(TEXTS) + 1)
    ]
    options = BatchingOptions(max_batch_size=size, delay_seconds=0.05)
    with running(small_model.parents[1], batching=options, grpc_port=None) as server:
        alone = [server.predict(document).json() for document in documents]
        before = number_of_batches(server)
        assert ask_all(server, documents) == alone
        made = number_of_batches(server) - before
        if size == 100:
            assert made < len(documents) / 2
        elif size == 1:
            assert made == len(documents)


def test_one_bad_request_does_not_harm_those_beside_it(small_model):
    options = BatchingOptions(max_batch_size=50, delay_seconds=0.1)
    documents = [{"signature_name": "positive", "instances": [x]} for x in (1, 0, 3, -1, 5)]
    with running(small_model.parents[1], batching=options, grpc_port=None) as server:
        answers = ask_all(server, documents)
    assert [answer.get("predictions") for answer in answers] == [[1], None, [3], None, [5]]
    assert "all must be positive" in answers[1]["error"]


def test_what_can_be_told_apart_is_shared(small_model):
    signatures = read_signature_defs(small_model)
    shared = {name for name, signature in signatures.items() if can_share(signature)}
    assert shared == set(signatures) - {"padded", "__saved_model_init_op"}


def test_deadline_and_waiting_room(small_model):
    limits = Limits(seconds=1.0, waiting=2)
    wait = {"signature_name": "wait", "instances": [1.2]}
    with running(small_model.parents[1], limits=limits, grpc_port=None, threads=1) as server:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(server.predict, wait) for _ in range(2)]
            server.wait_for(lambda: server.server.models.versions("small")[0].users == 2)
            refused = server.predict(wait)
            answers = [one.result() for one in waiting]
        assert refused.status_code == 429
        assert "2 requests are waiting" in refused.json()["error"]
        for answer in answers:
            assert answer.status_code == 504
            assert "within 1 seconds" in answer.json()["error"]


def signature(inputs, outputs):
    """A signature with tensors of these shapes; `None` is a dimension of unknown size."""
    definition = meta_graph_pb2.SignatureDef()
    for tensors, shapes in ((definition.inputs, inputs), (definition.outputs, outputs)):
        for name, shape in shapes.items():
            tensors[name].tensor_shape.CopyFrom(tf.TensorShape(shape).as_proto())
    return definition


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ({"x": [None]}, {"y": [None]}, True),
        ({"x": [None, 3]}, {"y": [None, 5]}, True),
        ({"x": [None], "z": [None, 3]}, {"y": [None, None], "lengths": [None]}, True),
        # Rows of other requests might have another width: they cannot stand in one array.
        ({"x": [None, None]}, {"y": [None]}, False),
        ({"x": [None], "z": [None, 3, None]}, {"y": [None]}, False),
        ({"x": [None, None]}, {"y": [None, None], "lengths": [None]}, False),
        ({"x": [5]}, {"y": [None]}, False),
        ({"x": []}, {"y": [None]}, False),
        ({"x": None}, {"y": [None]}, False),
        ({"x": [None]}, {"y": []}, False),
        ({"x": [None]}, {"y": [5]}, False),
        ({"x": [None]}, {"y": [None, None]}, False),
        ({"x": [None]}, {"y": [None, None], "lengths": [None, 1]}, False),
        ({"x": [None]}, {"y": [None, 3, None], "lengths": [None]}, False),
        ({}, {"y": [None]}, False),
    ],
)
def test_which_signatures_share_batches(inputs, outputs, expected):
    assert can_share(signature(inputs, outputs)) == expected


def test_requests_of_ragged_inputs_are_answered_one_by_one():
    """Each request's inputs are an array; those of two requests have different widths."""

    class Sums:
        def __init__(self):
            self.name = "sums"
            self.signature_defs = {"sum": signature({"x": [None, None]}, {"y": [None]})}

        def run(self, name, inputs):
            return {"y": inputs["x"].sum(axis=1)}

    async def ask():
        options = BatchingOptions(max_batch_size=50, delay_seconds=0.1)
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            batcher = Batcher(executor, 1, options, Limits(), Metrics())
            sums = Sums()
            answers = await asyncio.gather(
                *(batcher.run(sums, "sum", {"x": np.ones((2, n))}, 20) for n in (3, 5, 3))
            )
            await batcher.close()
        return answers, batcher.metrics.text()

    answers, text = asyncio.run(ask())
    assert [answer["y"].tolist() for answer in answers] == [[3, 3], [5, 5], [3, 3]]
    assert re.search(r"batch_size_count\S* 3$", text, re.M), text
