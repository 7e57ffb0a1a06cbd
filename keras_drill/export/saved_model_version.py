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
# Parameters by which TensorFlow Serving combines requests to this model into batches. To use the
# file of each model:
#
#     tensorflow_model_server --enable_batching --enable_per_model_batching_parameters ...
#
# To use a copy of this file for all models of a server:
#
#     tensorflow_model_server --enable_batching --batching_parameters_file=batching_params.pbtxt ...
#
# Largest number of rows in a batch. Larger batches increase throughput, but all rows of a batch
# wait for the longest row.
max_batch_size { value: 32 }
# Time for which the first request of a batch waits for others. 0 only combines waiting requests.
batch_timeout_micros { value: 2000 }
# Largest number of waiting batches. Further requests are refused (UNAVAILABLE).
max_enqueued_batches { value: 64 }
# Number of batches that are computed in parallel, about the number of cores. The server reads this
# parameter only with --batching_parameters_file.
num_batch_threads { value: 4 }
# allowed_batch_sizes is omitted: models take any batch size, and would also compute the padding.
# pad_variable_length_inputs is omitted: every input has one value for each row.
"""


class NewVersion:
    """A version that is being written to a temporary folder.

    Args:
        beside: The temporary folder.

    Attributes:
        model: Folder to which the SavedModel is written.
        published: The version's final folder, once it exists.
    """

    def __init__(self, beside: Path):
        self.beside = beside
        self.model = beside / "model"
        self.published: Path = self.model

    def __truediv__(self, name: str) -> Path:
        return self.beside / name


@contextlib.contextmanager
def new_version(directory: str | os.PathLike, version: int | None) -> Iterator[NewVersion]:
    """Context manager for writing a new version of a model, `directory/<version>/`, atomically.

    Write the SavedModel to the attribute `model` of the `NewVersion`. At the end, its folder is
    renamed to the version. A killed process leaves a hidden folder, `.<version>.*` or `.next.*`,
    which servers ignore.

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
            "`version` must be new, because exports never overwrite a version. "
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
    """Returns one more than the highest version, including versions that were rolled back."""
    found = [re.fullmatch(r"(\d+)|\.(\d+)\.rolled-back", path.name) for path in directory.iterdir()]
    return 1 + max((int(match[1] or match[2]) for match in found if match), default=0)
