"""TensorFlow Serving's gRPC interface: PredictionService and ModelService."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import tensorflow as tf

from keras_drill.workbench.serving.errors import ServingError, invalid
from keras_drill.workbench.serving.examples import classify, regress
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.models import Models
from keras_drill.workbench.serving.predictions import DEFAULT_SIGNATURE, Predictor
from keras_drill.workbench.serving.servable import Servable
from keras_drill.workbench.serving.tensor_protos import read_tensor, write_tensor

_MOST_DETAILS = 1000  # maximum characters of an error message, which is sent in a header


class GrpcServer:
    """Serves Predict, Classify, Regress, GetModelMetadata and GetModelStatus over gRPC.

    Args:
        models: The served models.
        predictor: Runs the signatures of models.
        metrics: Metrics that count the requests.
        limits: Limits of requests.
    """

    def __init__(self, models: Models, predictor: Predictor, metrics: Metrics, limits: Limits):
        self.models = models
        self.predictor = predictor
        self.metrics = metrics
        self.limits = limits
        self._apis = _serving_apis()
        self._server: Any = None

    async def start(self, host: str, port: int) -> int:
        """Starts to listen, and returns the port. The system chooses a port if `port` is 0."""
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", self.limits.request_bytes),
                ("grpc.so_reuseport", 0),
            ]
        )
        apis = self._apis
        self._add(
            "PredictionService",
            ("Predict", apis.predict_pb2.PredictRequest, self._predict),
            ("Classify", apis.classification_pb2.ClassificationRequest, self._classify),
            ("Regress", apis.regression_pb2.RegressionRequest, self._regress),
            (
                "GetModelMetadata",
                apis.get_model_metadata_pb2.GetModelMetadataRequest,
                self._metadata,
            ),
        )
        self._add(
            "ModelService",
            ("GetModelStatus", apis.get_model_status_pb2.GetModelStatusRequest, self._status),
        )
        shown = f"[{host}]" if ":" in host else host
        try:
            bound = self._server.add_insecure_port(f"{shown}:{port}")
        except RuntimeError as error:
            raise OSError(f"gRPC cannot listen on {shown}:{port}; is the port taken?") from error
        await self._server.start()
        return bound

    async def stop(self, grace_seconds: float) -> None:
        """Refuses new requests, and waits up to `grace_seconds` for the current ones."""
        if self._server is not None:
            await self._server.stop(grace_seconds)

    def _add(self, service: str, *methods: tuple[str, Any, Callable]) -> None:
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._counted(name, answer),
                request_deserializer=request.FromString,
                response_serializer=lambda response: response.SerializeToString(),
            )
            for name, request, answer in methods
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"tensorflow.serving.{service}", handlers),)
        )

    def _counted(self, api: str, answer: Callable[[Any, Any], Awaitable[Any]]) -> Callable:
        """Wraps a method to report errors as gRPC status codes and to count its requests."""

        async def handle(request: Any, context: Any) -> Any:
            start = time.monotonic()
            error = None
            try:
                return await answer(request, context)
            except ServingError as refused:
                error = refused
            except Exception as failed:
                error = ServingError("INTERNAL", f"{type(failed).__name__}: {failed}")
            finally:
                name = request.model_spec.name
                self.metrics.count_request(
                    name if name in self.models.names else "",
                    "GRPC",
                    api,
                    error.code if error else "OK",
                    time.monotonic() - start,
                )
            await context.abort(grpc.StatusCode[error.code], error.message[:_MOST_DETAILS])

        return handle

    async def _predict(self, request: Any, context: Any) -> Any:
        spec = request.model_spec
        with self._use(spec) as servable:
            inputs = {
                name: read_tensor(name, tensor, self.limits)
                for name, tensor in request.inputs.items()
            }
            outputs = await self.predictor.predict(
                servable,
                spec.signature_name,
                inputs,
                request.output_filter,
                context.time_remaining(),
            )
            response = self._apis.predict_pb2.PredictResponse(
                outputs={name: write_tensor(value) for name, value in outputs.items()}
            )
            _fill(response.model_spec, servable, spec.signature_name)
            return response

    async def _classify(self, request: Any, context: Any) -> Any:
        with self._use(request.model_spec) as servable:
            signature = request.model_spec.signature_name
            examples = _examples(request.input, "ClassificationRequest", self.limits)
            results = await classify(self.predictor, servable, signature, examples)
            response = self._apis.classification_pb2.ClassificationResponse()
            for pairs in results:
                classes = response.result.classifications.add().classes
                for label, score in pairs:
                    classes.add(label=label, score=score)
            _fill(response.model_spec, servable, signature)
            return response

    async def _regress(self, request: Any, context: Any) -> Any:
        with self._use(request.model_spec) as servable:
            signature = request.model_spec.signature_name
            examples = _examples(request.input, "RegressionRequest", self.limits)
            results = await regress(self.predictor, servable, signature, examples)
            response = self._apis.regression_pb2.RegressionResponse()
            for value in results:
                response.result.regressions.add(value=value)
            _fill(response.model_spec, servable, signature)
            return response

    async def _metadata(self, request: Any, context: Any) -> Any:
        if not request.HasField("model_spec"):
            raise invalid("Missing ModelSpec")
        if not request.metadata_field:
            raise invalid("GetModelMetadataRequest must specify at least one metadata_field")
        for field in request.metadata_field:
            if field != "signature_def":
                raise invalid(f"Metadata field {field} is not supported")
        apis = self._apis.get_model_metadata_pb2
        with self._use(request.model_spec) as servable:
            signatures = apis.SignatureDefMap(signature_def=servable.signature_defs)
            response = apis.GetModelMetadataResponse()
            response.model_spec.name = servable.name
            response.model_spec.version.value = servable.version
            response.metadata["signature_def"].Pack(signatures)
            return response

    async def _status(self, request: Any, context: Any) -> Any:
        if not request.HasField("model_spec"):
            raise invalid("Missing ModelSpec")
        apis = self._apis.get_model_status_pb2
        response = apis.GetModelStatusResponse()
        for version in self.models.versions(*_choice(request.model_spec)):
            status = response.model_version_status.add()
            status.version = version.number
            status.state = apis.ModelVersionStatus.State.Value(version.state)
            status.status.error_code = grpc.StatusCode[version.code].value[0]
            status.status.error_message = version.message
        return response

    def _use(self, spec: Any) -> Any:
        return self.models.use(*_choice(spec))


def _choice(spec: Any) -> tuple[str, int | None, str | None]:
    version = spec.version.value if spec.WhichOneof("version_choice") == "version" else None
    return spec.name, version, spec.version_label or None


def _fill(spec: Any, servable: Servable, signature: str) -> None:
    spec.name = servable.name
    spec.version.value = servable.version
    spec.signature_name = signature or DEFAULT_SIGNATURE


def _examples(sent: Any, request: str, limits: Limits) -> list[bytes]:
    """Reads the `tf.Example`s of an `Input`, adds its context's features, and serializes them."""
    kind = sent.WhichOneof("kind")
    examples = getattr(sent, kind).examples if kind else ()
    if not examples:
        raise invalid(f"{request}::input is empty.")
    if len(examples) > limits.rows:
        raise invalid(f"There are {len(examples)} examples; at most {limits.rows} are allowed")
    serialized = []
    for one in examples:
        example = tf.train.Example()
        if kind == "example_list_with_context":
            example.CopyFrom(sent.example_list_with_context.context)
        example.MergeFrom(one)
        serialized.append(example.SerializeToString(deterministic=True))
    return serialized


def _serving_apis() -> Any:
    try:
        from tensorflow_serving import apis
        from tensorflow_serving.apis import (  # noqa: F401  become attributes of `apis`
            classification_pb2,
            get_model_metadata_pb2,
            get_model_status_pb2,
            predict_pb2,
            regression_pb2,
        )
    except ImportError as error:
        raise ImportError(
            "The server needs more libraries: pip install 'keras-drill[serve]'"
        ) from error
    return apis
