"""Small SavedModels with signatures of every kind that a server meets."""

import os

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

TEXTS = tf.TensorSpec([None], tf.string)
NUMBERS = tf.TensorSpec([None], tf.float32)


class _Signatures(tf.Module):
    def __init__(self, version):
        super().__init__()
        self.version = tf.Variable(version, dtype=tf.int64)

    @tf.function(input_signature=[TEXTS])
    def split(self, texts):
        """Rows of different lengths, padded."""
        words = tf.strings.split(texts)
        return {
            "words": words.to_tensor(""),
            "lengths": tf.cast(words.row_lengths(), tf.int32),
            "version": tf.fill(tf.shape(texts), self.version),
        }

    @tf.function(input_signature=[NUMBERS])
    def half(self, x):
        return {"y": 0.5 * x + 2}

    @tf.function(input_signature=[NUMBERS])
    def narrow(self, x):
        return {
            "brain": tf.cast(x, tf.bfloat16),
            "half": tf.cast(x, tf.float16),
            "double": tf.cast(x, tf.float64),
        }

    @tf.function(input_signature=[TEXTS, tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 3])])
    def several(self, text, number, weights):
        return {
            "text": text,
            "sum": tf.reduce_sum(weights, -1) * tf.cast(number, tf.float32),
            "raw_bytes": text,
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def positive(self, x):
        tf.debugging.assert_positive(x, "all must be positive")
        return {"x": tf.identity(x)}

    @tf.function(input_signature=[TEXTS])
    def padded(self, texts):
        """Padding that nobody can tell."""
        return {"words": tf.strings.split(texts).to_tensor("")}

    @tf.function(input_signature=[NUMBERS])
    def wait(self, seconds):
        start = tf.timestamp()
        longest = tf.cast(tf.reduce_max(seconds), tf.float64)
        tf.while_loop(lambda: tf.timestamp() - start < longest, lambda: [], [])
        return {"waited": tf.identity(seconds)}

    @tf.function(input_signature=[TEXTS])
    def classify(self, inputs):
        x = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([], tf.float32, 0.0)})["x"]
        scores = tf.stack([x, 1 - x], -1)
        return {"classes": tf.fill(tf.shape(scores), "cat"), "scores": scores}

    @tf.function(input_signature=[TEXTS])
    def regress(self, inputs):
        x = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([], tf.float32, 0.0)})["x"]
        return {"outputs": 0.5 * x + 2}


def write_model(folder, version):
    """Writes a version beside its place, and puts it there by a rename."""
    module = _Signatures(version)
    names = [
        "split",
        "half",
        "narrow",
        "several",
        "positive",
        "padded",
        "wait",
        "classify",
        "regress",
    ]
    signatures = {name: getattr(module, name).get_concrete_function() for name in names}
    signatures["serving_default"] = signatures["split"]
    beside = folder / f".{version}.new"
    tf.saved_model.save(module, str(beside), signatures=signatures)
    path = beside / "saved_model.pb"
    saved_model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for name in ("classify", "regress"):  # what TensorFlow 2 has no way to say
        saved_model.meta_graphs[0].signature_def[name].method_name = f"tensorflow/serving/{name}"
    path.write_bytes(saved_model.SerializeToString())
    os.rename(beside, folder / str(version))
    return folder / str(version)
