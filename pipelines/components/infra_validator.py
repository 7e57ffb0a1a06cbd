"""InfraValidator: checks that a server can load and run the model."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_drill.export import unserved_operations
from keras_drill.export.warmup_requests import example_inputs
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.task import Task
from keras_drill.workbench.training.evaluate_examples import first_examples
from pipelines.components.trainer import serving_folder
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import InfraValidatorOptions

FILE = "infra_validation.json"
_ODD = [b"", b" ", b"\n", "\u202eשלום 😀".encode(), b"\xff\xfe", b"a\0b", b"x" * 2000]


class InfraValidator(Component):
    """Calls all signatures of the model in a process with only TensorFlow and tensorflow-text.

    The component refuses the model, and stops the pipeline, in these cases:

    - TensorFlow Serving does not support an operation of the model.
    - The process cannot load the model, or exceeds the time limit.
    - An output contains NaN.
    - The output for a request depends on the other requests of the batch.

    The requests are texts of the examples and edge cases: empty text, invalid UTF-8, NUL bytes.

    Args:
        task: Task that reads the examples.
        options: The options.
    """

    name = "InfraValidator"
    version = 1
    reads = ("examples", "model")
    writes = "infra_validation"

    def __init__(
        self,
        task: Task,
        options: InfraValidatorOptions = InfraValidatorOptions(),  # noqa: B008
    ):
        super().__init__(options)
        self.task = task

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        folder = serving_folder(inputs["model"])
        unserved = unserved_operations(folder)
        wrong = [
            f"TensorFlow Serving does not run {operation}: {place}"
            for operation, place in sorted(unserved.items())
        ]
        seconds: dict[str, float] = {}
        if not wrong:
            columns = list(self.task.read_columns(str(inputs["examples"])).values())[-1]
            texts = next(iter(first_examples(columns, self.options.examples).values()))
            progress(0, "signatures")
            told = self._ask(folder, [*texts, *_ODD])
            wrong = [told["error"]] if "error" in told else told["wrong"]
            seconds = told.get("seconds", {})
        (output / FILE).write_text(json.dumps({"wrong": wrong}, indent=2) + "\n", encoding="utf-8")
        facts: Facts = {"verdict": "refused" if wrong else "blessed"}
        if seconds:
            facts |= {"signatures": len(seconds) - 1, "seconds to load": round(seconds["load"], 1)}
        return facts

    def stopping_reason(self, artifact: Path) -> str | None:
        wrong = json.loads((artifact / FILE).read_text(encoding="utf-8"))["wrong"]
        if not wrong:
            return None
        return "the model cannot be served:\n" + "\n".join(f"  {each}" for each in wrong)

    def _ask(self, folder: Path, texts: list[bytes]) -> dict[str, Any]:
        """Runs `query_model.py` and returns its result."""
        requests = {
            name: {key: to_lists(values) for key, values in example_inputs(names, texts).items()}
            for name, names in _signatures(folder).items()
        }
        with tempfile.TemporaryDirectory() as temporary:
            file = Path(temporary) / "requests.json"
            file.write_text(json.dumps(requests), encoding="utf-8")
            script = Path(__file__).with_name("query_model.py")
            try:
                process = subprocess.run(
                    [sys.executable, "-I", script, folder.resolve(), file],
                    capture_output=True,
                    text=True,
                    cwd=temporary,
                    timeout=self.options.timeout,
                )
            except subprocess.TimeoutExpired:
                limit = self.options.timeout
                return {"error": f"no result within infra_validator.timeout = {limit} seconds"}
        lines = process.stdout.splitlines()
        if process.returncode or not lines:
            last = (process.stderr.splitlines() or ["no message"])[-1]
            return {"error": f"the process ended with status {process.returncode}: {last}"}
        return json.loads(lines[-1])


def to_lists(values: Any) -> list:
    """Converts values to the JSON format that `query_model.py` reads."""
    if isinstance(values, np.ndarray):
        return [values.dtype.name, values.tolist()]
    return ["string", [tf.compat.as_bytes(value).hex() for value in values]]


def _signatures(folder: Path) -> dict[str, list[str]]:
    """Reads the names of the inputs of each signature from `saved_model.pb`."""
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((folder / "saved_model.pb").read_bytes())
    found = {
        name: sorted(signature.inputs)
        for name, signature in saved_model.meta_graphs[0].signature_def.items()
        if not name.startswith("__")
    }
    if not found:
        raise RunError(f"{folder} has no signatures that can be validated; export the model again")
    return found
