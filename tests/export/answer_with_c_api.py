"""Runs a SavedModel by TensorFlow's C API alone, through the loader that TensorFlow Serving uses.

python answer_with_c_api.py FOLDER FEED FETCH... < TEXTS

FEED and FETCH are tensor names; each line of TEXTS is one text in hexadecimal digits. Prints each
fetched tensor as a line of JSON, a list of numbers or of strings in hexadecimal digits. No module
of TensorFlow or of any other package is imported.
"""

import array
import ctypes
import importlib.util
import json
import sys
from pathlib import Path

STRING, STRING_BYTES = 7, 24
NUMBERS = {1: "f", 3: "i"}  # TF_FLOAT, TF_INT32


class Output(ctypes.Structure):
    _fields_ = (("operation", ctypes.c_void_p), ("index", ctypes.c_int))


def package_folder(name):
    return Path(importlib.util.find_spec(name).origin).parent


tf = ctypes.CDLL(str(package_folder("tensorflow") / "libtensorflow_cc.so.2"))
RESULTS = {
    ctypes.c_void_p: (
        "TF_NewStatus",
        "TF_NewGraph",
        "TF_NewSessionOptions",
        "TF_LoadLibrary",
        "TF_LoadSessionFromSavedModel",
        "TF_GraphOperationByName",
        "TF_AllocateTensor",
        "TF_TensorData",
        "TF_StringGetDataPointer",
    ),
    ctypes.c_char_p: ("TF_Message",),
    ctypes.c_size_t: ("TF_StringGetSize", "TF_TensorByteSize"),
}
for result_type, names in RESULTS.items():
    for name in names:
        getattr(tf, name).restype = result_type
status = ctypes.c_void_p(tf.TF_NewStatus())


def check():
    if tf.TF_GetCode(status):
        sys.exit(tf.TF_Message(status).decode())


def string_tensor(texts):
    dims = (ctypes.c_int64 * 1)(len(texts))
    size = ctypes.c_size_t(STRING_BYTES * len(texts))
    tensor = ctypes.c_void_p(tf.TF_AllocateTensor(STRING, dims, 1, size))
    data = tf.TF_TensorData(tensor)
    for row, text in enumerate(texts):
        place = ctypes.c_void_p(data + STRING_BYTES * row)
        tf.TF_StringInit(place)
        tf.TF_StringCopy(place, text, ctypes.c_size_t(len(text)))
    return tensor


def values(tensor):
    data, size = tf.TF_TensorData(tensor), tf.TF_TensorByteSize(tensor)
    if tf.TF_TensorType(tensor) in NUMBERS:
        return array.array(NUMBERS[tf.TF_TensorType(tensor)], ctypes.string_at(data, size)).tolist()
    places = [ctypes.c_void_p(data + offset) for offset in range(0, size, STRING_BYTES)]
    return [
        ctypes.string_at(tf.TF_StringGetDataPointer(place), tf.TF_StringGetSize(place)).hex()
        for place in places
    ]


def output(graph, tensor_name):
    operation, index = tensor_name.split(":")
    found = tf.TF_GraphOperationByName(graph, operation.encode())
    if not found:
        sys.exit(f"no operation {operation}")
    return Output(found, int(index))


folder, feed, *fetches = sys.argv[1:]
texts = [bytes.fromhex(line) for line in sys.stdin.read().split("\n")[:-1]]
for library in sorted((package_folder("tensorflow_text") / "python" / "ops").glob("_*.so")):
    tf.TF_LoadLibrary(str(library).encode(), status)
    check()
graph = ctypes.c_void_p(tf.TF_NewGraph())
session = ctypes.c_void_p(
    tf.TF_LoadSessionFromSavedModel(
        ctypes.c_void_p(tf.TF_NewSessionOptions()),
        None,
        folder.encode(),
        (ctypes.c_char_p * 1)(b"serve"),
        1,
        graph,
        None,
        status,
    )
)
check()
inputs = (Output * 1)(output(graph, feed))
outputs = (Output * len(fetches))(*[output(graph, fetch) for fetch in fetches])
fed = (ctypes.c_void_p * 1)(string_tensor(texts))
found = (ctypes.c_void_p * len(fetches))()
count = len(fetches)
tf.TF_SessionRun(session, None, inputs, fed, 1, outputs, found, count, None, 0, None, status)
check()
for tensor in found:
    print(json.dumps(values(ctypes.c_void_p(tensor))))
