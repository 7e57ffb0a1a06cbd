"""Versions of a model in a folder that TensorFlow Serving watches."""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_drill.export.model_card import ModelCard
from keras_drill.export.serving_operations import check_operations
from keras_drill.export.warmup_requests import example_inputs, write_warmup_requests

_BATCHING = """\
# How TensorFlow Serving puts requests together for this model. To switch it on:
#
#     tensorflow_model_server --enable_batching --enable_per_model_batching_parameters ...
#
# which reads this file of each model, or, for all models of a server alike, with a copy of it,
#
#     tensorflow_model_server --enable_batching --batching_parameters_file=batching_params.pbtxt ...
#
# Rows of a request that are waited for: more make use of the machine, and all wait for the longest.
max_batch_size { value: 32 }
# How long the first one waits for others. 0 only puts together what waits already.
batch_timeout_micros { value: 2000 }
# Batches that may wait before requests are refused (UNAVAILABLE) rather than answered late.
max_enqueued_batches { value: 64 }
# Batches in work at a time; read from --batching_parameters_file alone. About the number of cores.
num_batch_threads { value: 4 }
# allowed_batch_sizes is left out: models take any size, and would compute what is filled up.
# pad_variable_length_inputs is left out: every input has one value for each row.
"""


class NewVersion:
    """A version that is being written to a temporary folder.

    Args:
        beside: The temporary folder.

    Attributes:
        model: Folder for the SavedModel.
        published: The version's folder, after publishing.
    """

    def __init__(self, beside: Path):
        self.beside = beside
        self.model = beside / "model"
        self.published: Path = self.model

    def __truediv__(self, name: str) -> Path:
        return self.beside / name


@contextlib.contextmanager
def new_version(directory: str | os.PathLike, version: int | None) -> Iterator[NewVersion]:
    """Context manager that publishes the SavedModel written to `model` as `directory/<version>/`,
    by a rename.

    A killed process leaves a hidden folder `.<version>.*`, which servers ignore.

    Args:
        directory: The model's folder. Created if missing.
        version: A positive integer, different from existing versions. `None` is one more than the
            highest version.
    """
    directory = Path(directory)
    if version is not None and (not isinstance(version, int) or version < 1):
        raise ValueError(f"`version` must be a positive integer. Received: version={version!r}")
    if version is not None and (directory / str(version)).exists():
        raise FileExistsError(
            f"`version` must not be there yet: exports are never overwritten. "
            f"Received: version={version}, which is in {str(directory)!r}"
        )
    directory.mkdir(parents=True, exist_ok=True)
    folder = NewVersion(Path(tempfile.mkdtemp(prefix=f".{version or 'next'}.", dir=directory)))
    try:
        yield folder
        folder.published = _publish(folder.model, directory, version)
    finally:
        shutil.rmtree(folder.beside, ignore_errors=True)


def write_module(
    signatures: Mapping[str, Any],
    resources: tf.Module,
    folder: Path,
    warmup_texts: Sequence[str],
    card: ModelCard | None = None,
) -> None:
    """Writes functions as a SavedModel with the variables that they use, and no others.

    Args:
        signatures: `tf.function`s with input signatures, by name.
        resources: Object that holds the tables and files of the functions.
        folder: Folder to write to.
        warmup_texts: Texts that a server sends through every signature first. If empty, no warm-up
            file is written.
        card: Model card to write beside the model.

    Raises:
        ValueError: A function has an operation that TensorFlow Serving does not run.
    """
    concrete = {name: function.get_concrete_function() for name, function in signatures.items()}
    saved = tf.Module()  # not the module itself, whose methods would be written a second time
    saved.codec = resources
    used = {id(v): v for function in concrete.values() for v in function.graph.variables}
    saved.weights = list(used.values())
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(saved, str(folder), signatures=concrete, options=options)
    check_operations(folder)
    (folder / "batching_params.pbtxt").write_text(_BATCHING, encoding="utf-8")
    (folder / "assets.extra").mkdir()
    if card is not None:
        card.write(folder / "assets.extra")
    if warmup_texts:
        requests = [
            (name, example_inputs(_input_names(function), warmup_texts))
            for name, function in concrete.items()
            if name != "serving_default"
        ]
        write_warmup_requests(folder / "assets.extra" / "tf_serving_warmup_requests", requests)


def _input_names(function: Any) -> list[str]:
    positional, _ = function.structured_input_signature
    return [spec.name for spec in positional]


def _publish(folder: Path, directory: Path, version: int | None) -> Path:
    """Renames `folder` to its version. Tries the next number if another process has taken it."""
    while True:
        number = _next_version(directory) if version is None else version
        target = directory / str(number)
        try:
            os.rename(folder, target)
            return target
        except OSError:
            # Continue only if another export has created the folder in the meantime.
            if version is not None or not target.exists():
                raise


def _next_version(directory: Path) -> int:
    """One more than the highest version, including versions that were rolled back."""
    found = [re.fullmatch(r"(\d+)|\.(\d+)\.rolled-back", path.name) for path in directory.iterdir()]
    return 1 + max((int(match[1] or match[2]) for match in found if match), default=0)
