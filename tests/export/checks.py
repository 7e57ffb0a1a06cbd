"""What holds for every exported model."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import kernels, op_def_registry

# Structure that the runtime replaces before it runs a graph.
WITHOUT_KERNELS = {"NoOp"}


def meta_graph(folder):
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((folder / "saved_model.pb").read_bytes())
    return saved_model.meta_graphs[0]


def check_same_answers(cases, tmp_path):
    """Another process, without Keras, answers requests byte for byte as the exporting one.

    Args:
        cases: Triples of a `TextModel`, the folder that it was exported to, and a list of pairs of
            a signature's name and its inputs.
        tmp_path: An empty folder.

    Returns:
        The sorted names of the signatures of each folder.
    """
    arguments, expected = [], []
    for number, (text_model, folder, requests) in enumerate(cases):
        arrays, answers = {}, {}
        for key, (signature, inputs) in enumerate(requests):
            key = f"{signature}/{key}/"
            arrays.update({key + name: value for name, value in inputs.items()})
            tensors = {
                name: tf.constant(value.astype(object) if value.dtype.kind == "S" else value)
                for name, value in inputs.items()
            }
            for name, value in text_model.signatures()[signature](**tensors).items():
                value = value.numpy()
                answers[key + name] = value.astype("S") if value.dtype == object else value
        expected.append(answers)
        np.savez(tmp_path / f"requests{number}.npz", **arrays)
        arguments += [folder, tmp_path / f"requests{number}.npz", tmp_path / f"{number}.npz"]
    script = Path(__file__).with_name("answer_without_keras.py")
    process = subprocess.run(
        [sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    for number, values in enumerate(expected):
        with np.load(tmp_path / f"{number}.npz") as answers:
            assert set(answers) == set(values)
            for key, value in values.items():
                assert answers[key].dtype == value.dtype
                assert answers[key].shape == value.shape
                assert answers[key].tobytes() == value.tobytes(), key
    return [line.split() for line in process.stdout.splitlines()]


def check_operations(folder):
    """Only operations that a stock server has, and can run without a GPU.

    It has TensorFlow's own and those of tensorflow-text, which this process has loaded as well.
    Evaluated by the kernels that are here, not by the list that the export goes by.
    """
    graph = meta_graph(folder).graph_def
    functions = {function.signature.name for function in graph.library.function}
    names = {node.op for node in graph.node}
    names.update(node.op for function in graph.library.function for node in function.node_def)
    for name in names - functions - WITHOUT_KERNELS:
        assert op_def_registry.get(name) is not None, name
        # A server runs XLA's own operations only with a compiler that is off by default.
        assert not name.startswith(("Addons>", "Xla", "Cudnn")), name
        assert name not in ("PyFunc", "EagerPyFunc", "PyFuncStateless"), name
        devices = {
            kernel.device_type for kernel in kernels.get_registered_kernels_for_op(name).kernel
        }
        assert devices & {"CPU", "DEFAULT"}, name


def warmup_requests(folder):
    """Pairs of a signature's name and its inputs."""
    path = str(folder / "assets.extra" / "tf_serving_warmup_requests")
    for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        request = _prediction_log_class().FromString(record).predict_log.request
        inputs = {}
        for name, tensor in request.inputs.items():
            proto = tensor_pb2.TensorProto.FromString(tensor.SerializeToString())
            inputs[name] = tf.constant(tf.make_ndarray(proto))
        yield request.model_spec.signature_name, inputs


def _prediction_log_class():
    """`tensorflow.serving.PredictionLog`, as tensorflow-serving-api declares it."""
    pool = descriptor_pool.DescriptorPool()
    field = descriptor_pb2.FieldDescriptorProto
    for name in ("types", "tensor_shape", "resource_handle", "tensor"):
        file = descriptor_pb2.FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(
            f"tensorflow/core/framework/{name}.proto"
        ).CopyToProto(file)
        pool.Add(file)
    file = descriptor_pb2.FileDescriptorProto(
        name="prediction_log.proto",
        package="tensorflow.serving",
        syntax="proto3",
        dependency=[tensor_pb2.DESCRIPTOR.name],
    )

    def message(name, *fields, parent=file.message_type):
        made = parent.add(name=name)
        for field_name, number, type_name, repeated in fields:
            made.field.add(
                name=field_name,
                number=number,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
                type=field.TYPE_MESSAGE if type_name else field.TYPE_STRING,
                type_name=type_name,
            )
        return made

    serving = ".tensorflow.serving."
    message("ModelSpec", ("name", 1, None, False), ("signature_name", 3, None, False))
    request = message(
        "PredictRequest",
        ("model_spec", 1, serving + "ModelSpec", False),
        ("inputs", 2, serving + "PredictRequest.InputsEntry", True),
    )
    entry = message(
        "InputsEntry",
        ("key", 1, None, False),
        ("value", 2, ".tensorflow.TensorProto", False),
        parent=request.nested_type,
    )
    entry.options.map_entry = True
    message("PredictLog", ("request", 1, serving + "PredictRequest", False))
    message("PredictionLog", ("predict_log", 6, serving + "PredictLog", False))
    pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("tensorflow.serving.PredictionLog")
    )
