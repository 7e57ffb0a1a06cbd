"""Handles predict requests of both the REST and the gRPC interface."""

from collections.abc import Mapping, Sequence

import numpy as np

from keras_drill.workbench.serving.batching import Batcher
from keras_drill.workbench.serving.errors import ServingError, invalid
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.servable import Servable, check_inputs

Arrays = dict[str, np.ndarray]
DEFAULT_SIGNATURE = "serving_default"


class Predictor:
    """Checks the inputs of requests, runs signatures, and selects the outputs.

    Args:
        batcher: Batcher that runs the signatures.
        limits: Limits of the inputs.
    """

    def __init__(self, batcher: Batcher, limits: Limits):
        self.batcher = batcher
        self.limits = limits

    async def predict(
        self,
        servable: Servable,
        signature: str,
        inputs: Arrays,
        output_filter: Sequence[str] = (),
        seconds: float | None = None,
    ) -> Arrays:
        """Runs a signature, and returns its outputs by name.

        Args:
            servable: The version to run.
            signature: Name of the signature; "" for the default signature.
            inputs: Arrays by name, with strings as objects.
            output_filter: Names of the outputs to return; empty for all outputs.
            seconds: Maximum duration, which cannot exceed the limits; `None` uses the limits.
        """
        name = signature or DEFAULT_SIGNATURE
        if name not in servable.signature_defs:
            raise ServingError("FAILED_PRECONDITION", f'Serving signature key "{name}" not found.')
        signature_def = servable.signature_defs[name]
        check_names(signature_def.inputs, inputs)
        check_output_filter(signature_def.outputs, output_filter)
        self.limits.check(inputs)
        check_inputs(signature_def, inputs)
        allowed = self.limits.seconds if seconds is None else min(seconds, self.limits.seconds)
        outputs = await self.batcher.run(servable, name, inputs, allowed)
        return {name: outputs[name] for name in output_filter or sorted(outputs)}


def check_names(expected: Mapping, inputs: Mapping) -> None:
    """Raises `ServingError` if the names of inputs differ from a signature's inputs.

    The messages are those of TensorFlow Serving.
    """
    if len(inputs) != len(expected):
        extra, missing = inputs.keys() - expected.keys(), expected.keys() - inputs.keys()
        raise invalid(
            f"input size does not match signature: {len(inputs)}!={len(expected)} "
            f"len({_set(inputs)}) != len({_set(expected)}). Sent extra: {_set(extra)}. "
            f"Missing but required: {_set(missing)}."
        )
    for name in sorted(inputs):
        if name not in expected:
            raise invalid(
                f"input tensor alias not found in signature: {name}. Inputs expected to be in the "
                f"set {_set(expected)}."
            )


def check_output_filter(outputs: Mapping, names: Sequence[str]) -> None:
    """Raises `ServingError` if names of outputs are unknown or repeated."""
    for index, name in enumerate(names):
        if name not in outputs:
            raise invalid(
                f"output tensor alias not found in signature: {name} Outputs expected to be in "
                f"the set {_set(outputs)}."
            )
        if name in names[:index]:
            raise invalid(f"duplicate output tensor alias: {name}")


def _set(names) -> str:
    return "{" + ",".join(sorted(names)) + "}"
