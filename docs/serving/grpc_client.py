"""Lets a served model continue texts, and says how probable they are: gRPC.

    pip install tensorflow-serving-api
    python grpc_client.py localhost:8500 MODEL TEXT ...

It talks to TensorFlow Serving and to `keras-drill serve` alike.
"""

import sys

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)


def predict(channel: grpc.Channel, model: str, signature: str, **inputs) -> dict:
    """The outputs of a signature as arrays, by name."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    answer = stub.Predict(request, timeout=60)
    return {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}


def main(server: str, model: str, *texts: str) -> None:
    with grpc.insecure_channel(server) as channel:
        request = get_model_status_pb2.GetModelStatusRequest()
        request.model_spec.name = model
        try:
            status = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(request)
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name}: {error.details()}")
        for version in status.model_version_status:
            state = get_model_status_pb2.ModelVersionStatus.State.Name(version.state)
            print(f"version {version.version} {state}")
        for text in predict(channel, model, "continue", prompts=list(texts))["texts"]:
            print(text.decode())
        for perplexity in predict(channel, model, "score", texts=list(texts))["perplexities"]:
            print(f"perplexity {perplexity:.5g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
