"""Answers requests with SavedModels in a process that has neither Keras nor keras_drill.

python answer_without_keras.py (FOLDER REQUESTS.npz ANSWERS.npz) ...

Prints the signatures of each. Arrays are named `<signature>/<request>/<input or output>`.
"""

import importlib.util
import sys
from pathlib import Path

# None in `sys.modules` is, to the import system, a package that is not installed.
sys.modules.update({"keras": None, "tf_keras": None, "keras_drill": None})

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

# What `import tensorflow_text` registers; the import itself would need Keras.
for library in Path(importlib.util.find_spec("tensorflow_text").origin).parent.glob(
    "python/ops/_*.so"
):
    tf.load_op_library(str(library))


def answer(folder, requests_path, answers_path):
    loaded = tf.saved_model.load(folder)
    requests = {}
    with np.load(requests_path) as file:
        for key, value in file.items():
            signature, request, name = key.split("/")
            requests.setdefault((signature, request), {})[name] = tf.constant(
                value.astype(object) if value.dtype.kind == "S" else value
            )
    answers = {}
    for (signature, request), inputs in requests.items():
        for name, value in loaded.signatures[signature](**inputs).items():
            value = value.numpy()
            answers[f"{signature}/{request}/{name}"] = (
                value.astype("S") if value.dtype == object else value
            )
    np.savez(answers_path, **answers)
    print(*sorted(loaded.signatures))


for start in range(1, len(sys.argv), 3):
    answer(*sys.argv[start : start + 3])
