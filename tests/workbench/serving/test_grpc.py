"""The gRPC interface, with the stubs that clients of TensorFlow Serving use."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

REFUSED_METHOD = (
    "Expected regression signature method_name to be tensorflow/serving/regress. Was: "
    "tensorflow/serving/predict"
)


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(server.grpc) as made:
        yield made


@pytest.fixture(scope="module")
def predictions(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def models(channel):
    return model_service_pb2_grpc.ModelServiceStub(channel)


def request_for(signature="", model="small", version=None, label="", outputs=(), **inputs):
    request = predict_pb2.PredictRequest(output_filter=outputs)
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    if label:
        request.model_spec.version_label = label
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def refusal(call, request, **options):
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=20, **options)
    return caught.value.code().name, caught.value.details()


def test_predict(predictions):
    answer = predictions.Predict(request_for("half", x=np.float32([1, 2])), timeout=20)
    assert answer.model_spec.name == "small"
    assert answer.model_spec.version.value == 7
    assert answer.model_spec.signature_name == "half"
    assert list(answer.outputs) == ["y"]
    assert answer.outputs["y"].dtype == tf.float32.as_datatype_enum
    assert list(answer.outputs["y"].float_val) == [2.5, 3.0]  # not bytes, which few clients read


@pytest.mark.parametrize("choice", [{"version": 7}, {"label": "best"}, {}])
def test_predict_with_the_default_signature(predictions, choice):
    answer = predictions.Predict(request_for(texts=["a b", ""], **choice), timeout=20)
    assert answer.model_spec.signature_name == "serving_default"
    arrays = {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}
    assert arrays["words"].tolist() == [[b"a", b"b"], [b"", b""]]
    assert arrays["lengths"].tolist() == [2, 0]
    assert arrays["lengths"].dtype == np.int32
    assert arrays["version"].tolist() == [7, 7]


def test_floating_point_numbers_of_every_size(predictions):
    answer = predictions.Predict(request_for("narrow", x=np.float32([1.5, 0.1])), timeout=20)
    arrays = {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}
    assert {name: array.dtype.name for name, array in arrays.items()} == {
        "brain": "bfloat16",
        "half": "float16",
        "double": "float64",
    }
    assert arrays["half"].tolist() == np.float16([1.5, 0.1]).tolist()
    assert arrays["double"].tolist() == [1.5, float(np.float32(0.1))]


def test_an_empty_batch(predictions):
    answer = predictions.Predict(request_for(texts=np.array([], "S")), timeout=20)
    assert tf.make_ndarray(answer.outputs["words"]).shape == (0, 0)


def test_output_filter(predictions):
    answer = predictions.Predict(request_for(texts=["a"], outputs=["lengths"]), timeout=20)
    assert list(answer.outputs) == ["lengths"]


@pytest.mark.parametrize(
    "request_, code, message",
    [
        (request_for(model="none"), "NOT_FOUND", "Servable not found for request: Latest(none)"),
        (
            request_for(version=8),
            "NOT_FOUND",
            "Servable not found for request: Specific(small, 8)",
        ),
        (request_for(model=""), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (
            request_for(label="none"),
            "INVALID_ARGUMENT",
            "Unrecognized servable version label: none",
        ),
        (
            request_for("none", x=[1.0]),
            "FAILED_PRECONDITION",
            'Serving signature key "none" not found.',
        ),
        (
            request_for("half"),
            "INVALID_ARGUMENT",
            "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}. "
            "Missing but required: {x}.",
        ),
        (
            request_for("half", y=[1.0]),
            "INVALID_ARGUMENT",
            "input tensor alias not found in signature: y. Inputs expected to be in the set {x}.",
        ),
        (
            request_for("half", x=["a"]),
            "INVALID_ARGUMENT",
            "Expects arg[0] to be float but string is provided",
        ),
        (request_for("half", x=[[1.0]]), "INVALID_ARGUMENT", "has the shape [1, 1]"),
        (
            request_for("half", x=[1.0], outputs=["z"]),
            "INVALID_ARGUMENT",
            "output tensor alias not found in signature: z Outputs expected to be in the set {y}.",
        ),
        (
            request_for("half", x=[1.0], outputs=["y", "y"]),
            "INVALID_ARGUMENT",
            "duplicate output tensor alias: y",
        ),
        (request_for("positive", x=np.int64([0])), "INVALID_ARGUMENT", "all must be positive"),
        (request_for(texts=["a" * 3001]), "INVALID_ARGUMENT", "at most 3000 are allowed"),
        (request_for(texts=["a"] * 51), "INVALID_ARGUMENT", "at most 50 are allowed"),
        (request_for(texts=["a" * 25_000]), "RESOURCE_EXHAUSTED", "20000"),
    ],
)
def test_refusals(predictions, request_, code, message):
    received, details = refusal(predictions.Predict, request_)
    assert received == code
    assert message in details


def test_a_small_message_that_claims_to_be_huge(predictions):
    request = request_for("half", x=[1.0])
    request.inputs["x"].tensor_shape.dim[0].size = 2**40
    assert refusal(predictions.Predict, request)[0] == "INVALID_ARGUMENT"
    request.inputs["x"].tensor_shape.dim[0].size = -1
    assert refusal(predictions.Predict, request)[0] == "INVALID_ARGUMENT"
    request = request_for("half", x=[1.0, 2.0])
    request.inputs["x"].tensor_content = b"abc"
    assert refusal(predictions.Predict, request)[0] == "INVALID_ARGUMENT"


def test_deadlines(predictions):
    with pytest.raises(grpc.RpcError) as caught:
        predictions.Predict(request_for("wait", seconds=np.float32([0.4])), timeout=0.1)
    assert caught.value.code().name == "DEADLINE_EXCEEDED"


def test_metadata(predictions):
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "small"
    answer = predictions.GetModelMetadata(request, timeout=20)
    assert (answer.model_spec.name, answer.model_spec.version.value) == ("small", 7)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["half"].method_name == "tensorflow/serving/predict"
    request.metadata_field[:] = ["other"]
    assert refusal(predictions.GetModelMetadata, request) == (
        "INVALID_ARGUMENT",
        "Metadata field other is not supported",
    )
    del request.metadata_field[:]
    assert "at least one metadata_field" in refusal(predictions.GetModelMetadata, request)[1]
    request.ClearField("model_spec")
    assert refusal(predictions.GetModelMetadata, request)[1] == "Missing ModelSpec"


def test_status(models):
    request = get_model_status_pb2.GetModelStatusRequest()
    assert refusal(models.GetModelStatus, request) == ("INVALID_ARGUMENT", "Missing ModelSpec")
    request.model_spec.name = "small"
    (status,) = models.GetModelStatus(request, timeout=20).model_version_status
    assert status.version == 7
    assert status.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert status.status.error_code == 0
    request.model_spec.version.value = 8
    assert refusal(models.GetModelStatus, request) == (
        "NOT_FOUND",
        "Could not find version 8 of model small",
    )
    request.model_spec.name = "none"
    request.model_spec.ClearField("version")
    message = "Could not find any versions of model none"
    assert refusal(models.GetModelStatus, request) == ("NOT_FOUND", message)


def test_classify_and_regress(predictions):
    request = classification_pb2.ClassificationRequest()
    request.model_spec.name = "small"
    request.model_spec.signature_name = "classify"
    assert refusal(predictions.Classify, request)[1] == "ClassificationRequest::input is empty."
    example = request.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(0.25)
    (classified,) = predictions.Classify(request, timeout=20).result.classifications
    assert [(one.label, one.score) for one in classified.classes] == [("cat", 0.25), ("cat", 0.75)]
    request = regression_pb2.RegressionRequest()
    request.model_spec.name = "small"
    request.model_spec.signature_name = "regress"
    with_context = request.input.example_list_with_context
    with_context.context.features.feature["x"].float_list.value.append(1.0)
    with_context.examples.add()
    (regressed,) = predictions.Regress(request, timeout=20).result.regressions
    assert regressed.value == 2.5
    request.model_spec.signature_name = ""
    code, message = refusal(predictions.Regress, request)
    assert code == "INVALID_ARGUMENT"
    assert message == REFUSED_METHOD
