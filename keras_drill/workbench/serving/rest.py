"""TensorFlow Serving's REST interface, which maps method, path and body to a JSON response."""

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from tensorflow.core.framework import types_pb2

from keras_drill.workbench.serving.errors import ServingError, invalid
from keras_drill.workbench.serving.examples import classify, read_examples, regress
from keras_drill.workbench.serving.json_inputs import read_inputs
from keras_drill.workbench.serving.json_outputs import write_outputs
from keras_drill.workbench.serving.json_values import parse_json, signature_name
from keras_drill.workbench.serving.metrics import Metrics
from keras_drill.workbench.serving.models import Models
from keras_drill.workbench.serving.predictions import DEFAULT_SIGNATURE, Predictor
from keras_drill.workbench.serving.servable import Servable

_MODEL = r"(?i:/v1/models)(?:/(?P<name>[^/:]+))?"
_CHOICE = r"(?:(?i:/versions)/(?P<version>[0-9]+)|(?i:/labels)/(?P<label>[^/:]+))?"
_GET = re.compile(_MODEL + _CHOICE + r"(?:/(?P<metadata>(?i:metadata)))?")
_POST = re.compile(_MODEL + _CHOICE + r":(?P<verb>classify|regress|predict)")
_PATHS = {"GET": _GET, "POST": _POST}
_APIS = {
    "predict": "Predict",
    "classify": "Classify",
    "regress": "Regress",
    "metadata": "GetModelMetadata",
    "": "GetModelStatus",
}
_GREATEST_VERSION = 2**63 - 1


class RestApi:
    """Handles requests to `/v1/models/NAME[/versions/V|/labels/L][:VERB]`.

    Args:
        models: The served models.
        predictor: Runs the signatures of models.
        metrics: Metrics that count the requests.
    """

    def __init__(self, models: Models, predictor: Predictor, metrics: Metrics):
        self.models = models
        self.predictor = predictor
        self.metrics = metrics

    async def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Handles a request, and returns the HTTP status and the JSON document of its response.

        Args:
            method: HTTP method, GET or POST.
            path: The quoted path of the request.
            body: Body of a POST request.
        """
        start = time.monotonic()
        pattern = _PATHS.get(method)
        found = pattern.fullmatch(path) if pattern else None
        parts = {
            key: unquote(part) for key, part in (found.groupdict() if found else {}).items() if part
        }
        code = "OK"
        try:
            if found is None:
                raise invalid(f"Malformed request: {method} {path}")
            if "name" not in parts:
                raise invalid("Missing model name in request.")
            if method == "GET":
                return 200, self._describe(parts)
            return 200, await self._run(parts, body)
        except ServingError as error:
            code = error.code
            return error.http_status, {"error": error.message}
        except Exception:
            code = "INTERNAL"
            raise
        finally:
            name = parts.get("name", "")
            known = name if name in self.models.names else ""  # limits the metrics' labels
            asked = parts.get("verb", "metadata" if "metadata" in parts else "")
            seconds = time.monotonic() - start
            self.metrics.count_request(known, "REST", _APIS[asked], code, seconds)

    def _describe(self, parts: Mapping[str, str]) -> dict[str, Any]:
        name, version, label = parts["name"], _version(parts), parts.get("label")
        if "metadata" not in parts:
            statuses = self.models.versions(name, version, label)
            return {
                "model_version_status": [
                    {
                        "version": str(status.number),
                        "state": status.state,
                        "status": {"error_code": status.code, "error_message": status.message},
                    }
                    for status in statuses
                ]
            }
        with self.models.use(name, version, label) as servable:
            return metadata(servable)

    async def _run(self, parts: Mapping[str, str], body: bytes) -> dict[str, Any]:
        document = parse_json(body)
        name = signature_name(document)
        with self.models.use(parts["name"], _version(parts), parts.get("label")) as servable:
            if parts["verb"] == "predict":
                return await self._predict(servable, name, document)
            examples = read_examples(document, parts["verb"], self.predictor.limits)
            answer = classify if parts["verb"] == "classify" else regress
            return {"results": await answer(self.predictor, servable, name, examples)}

    async def _predict(
        self, servable: Servable, signature: str, document: Mapping[str, Any]
    ) -> dict[str, Any]:
        name = signature or DEFAULT_SIGNATURE
        if name not in servable.signature_defs:
            raise invalid(f'Serving signature name: "{name}" not found in signature def')
        infos = servable.signature_defs[name].inputs
        if not infos:
            raise invalid(f"Failed to get input map for signature: {signature or 'DEFAULT'}")
        inputs, in_rows = read_inputs(document, infos, self.predictor.limits)
        return write_outputs(await self.predictor.predict(servable, name, inputs), in_rows)


def _version(parts: Mapping[str, str]) -> int | None:
    if "version" not in parts:
        return None
    digits = parts["version"]
    if len(digits) > len(str(_GREATEST_VERSION)) or int(digits) > _GREATEST_VERSION:
        raise invalid(f"Failed to convert version: {digits} to numeric.")
    return int(digits)


def metadata(servable: Servable) -> dict[str, Any]:
    """Returns the response to `/metadata`, which has the signatures of a version."""
    return {
        "model_spec": {
            "name": servable.name,
            "signature_name": "",
            "version": str(servable.version),
        },
        "metadata": {
            "signature_def": {
                "signature_def": {
                    name: {
                        "inputs": _tensors(signature.inputs),
                        "outputs": _tensors(signature.outputs),
                        "method_name": signature.method_name,
                        "defaults": {},
                    }
                    for name, signature in servable.signature_defs.items()
                }
            }
        },
    }


def _tensors(infos: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            "dtype": types_pb2.DataType.Name(info.dtype),
            "tensor_shape": {
                "dim": [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim],
                "unknown_rank": info.tensor_shape.unknown_rank,
            },
            "name": info.name,
        }
        for name, info in sorted(infos.items())
    }
