import subprocess
import sys

import pytest
import tensorflow as tf

from keras_drill.export.saved_model_version import write_module
from keras_drill.export.serving_operations import (
    TEXT_OPERATIONS,
    check_operations,
    is_served,
    unserved_operations,
)

_REGISTERED = """
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session as session
import tensorflow

def registered():
    operations = op_def_pb2.OpList()
    operations.ParseFromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
    return {operation.name for operation in operations.op}

stock = registered()
import tensorflow_text
print(*stock)
print(*(registered() - stock))
"""


def inside_a_condition(operation):
    """A function that has an operation two functions deep."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def answer(texts):
        inner = tf.function(lambda: operation(texts), autograph=False)
        return {"texts": tf.cond(tf.size(texts) > 3, inner, lambda: texts)}

    return {"serving_default": answer}


def from_python(texts):
    found = tf.py_function(lambda texts: texts, [texts], tf.string)
    found.set_shape([None])
    return found


def test_an_operation_that_no_server_has_is_found_and_refused(tmp_path):
    with pytest.raises(ValueError, match=r"Received: EagerPyFunc, node .* of the function '"):
        write_module(inside_a_condition(from_python), tf.Module(), tmp_path / "model", ())
    assert set(unserved_operations(tmp_path / "model")) == {"EagerPyFunc"}


def test_what_every_server_has_is_let_through(tmp_path):
    write_module(inside_a_condition(tf.strings.lower), tf.Module(), tmp_path / "model", ())
    check_operations(tmp_path / "model")
    assert unserved_operations(tmp_path / "model") == {}


@pytest.mark.slow
def test_the_lists_are_what_the_packages_register():
    said = subprocess.run(
        [sys.executable, "-c", _REGISTERED], check=True, capture_output=True, text=True, timeout=300
    ).stdout
    stock, text = (set(line.split()) for line in said.splitlines())
    assert set(dir(tf.raw_ops)) - stock <= {name for name in dir(tf.raw_ops) if name[0] == "_"}
    assert text <= TEXT_OPERATIONS
    assert not TEXT_OPERATIONS & stock
    for name in ("XlaDynamicUpdateSlice", "CudnnRNNV3", "PyFunc", "EagerPyFunc"):
        assert name in stock and not is_served(name)
