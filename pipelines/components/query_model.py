"""Calls the signatures of a SavedModel in a process that has neither Keras nor this package.

python -I query_model.py FOLDER REQUESTS.json

REQUESTS maps each signature to its inputs, and each input to `[dtype, values]`. Strings are
encoded as hexadecimal digits. The script prints a JSON object. On success, "seconds" contains the
time to load the model and the time of each signature, and "wrong" is a list of problems. On
failure, "error" is the message.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    # To the import system, None in `sys.modules` is a package that is not installed.
    for hidden in ("keras", "tf_keras", "keras_drill"):
        sys.modules[hidden] = None  # type: ignore[assignment]

import numpy as np
import tensorflow as tf


def tensor(dtype, values):
    if dtype == "string":
        return tf.constant([bytes.fromhex(value) for value in values], tf.string)
    return tf.constant(values, dtype)


def same(one, other):
    """Returns whether two outputs for a row are equal except for padding and rounding."""
    if isinstance(one, bytes):
        return one == other
    if one.ndim:
        both = min(len(one), len(other))
        one, other = one[:both], other[:both]
    if one.dtype == np.float32:
        return np.allclose(one, other, rtol=1e-2, atol=1e-2)
    return np.array_equal(one, other)


def ask(name, function, inputs):
    """Calls a signature for all rows as a batch and for each row alone. Yields the problems."""
    together = {key: value.numpy() for key, value in function(**inputs).items()}
    rows = len(next(iter(inputs.values())))
    for key, value in together.items():
        if len(value) != rows:
            yield f"{name}: the output {key} has {len(value)} rows for {rows} requests"
            return
        if value.dtype == np.float32 and np.isnan(value).any():
            yield f"{name}: the output {key} contains NaN"
    if name == "examples" and any(together["problems"]):
        yield f"examples: {next(filter(None, together['problems'])).decode()}"
    for row in range(rows):
        alone = function(**{key: value[row : row + 1] for key, value in inputs.items()})
        for key, value in alone.items():
            if not same(together[key][row], value.numpy()[0]):
                yield f"{name}: the output {key} of request {row + 1} depends on other requests"
                return


def main(folder, requests):
    package = importlib.util.find_spec("tensorflow_text")
    assert package is not None and package.origin is not None
    # Load the operations of tensorflow_text directly: the import itself would need Keras.
    for library in Path(package.origin).parent.glob("python/ops/_*.so"):
        tf.load_op_library(str(library))
    started = time.monotonic()
    loaded = tf.saved_model.load(folder)
    seconds, wrong = {"load": time.monotonic() - started}, []
    for name, inputs in json.loads(Path(requests).read_text()).items():
        started = time.monotonic()
        tensors = {key: tensor(*told) for key, told in inputs.items()}
        wrong += ask(name, loaded.signatures[name], tensors)
        seconds[name] = time.monotonic() - started
    return {"seconds": seconds, "wrong": wrong}


if __name__ == "__main__":
    try:
        told = main(*sys.argv[1:])
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told))
