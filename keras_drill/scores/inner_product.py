import keras
from keras import ops

from keras_drill.scores.score import Score


@keras.saving.register_keras_serializable(package="keras_drill")
class InnerProduct(Score):
    """`score(h, e_j) = h . e_j`, the score of every ordinary softmax layer."""

    def scores(self, hidden, labels, parameters):
        is_double = keras.backend.standardize_dtype(hidden.dtype) == "float64"
        scores = ops.einsum("rd,md->rm", hidden, labels)
        return ops.cast(scores, "float64" if is_double else "float32")

    def gradients(self, derivative, row_weights, hidden, labels, parameters, residual):
        row_weights = row_weights[:, None]
        low = ops.cast(derivative, hidden.dtype)
        d_hidden = ops.cast(ops.einsum("rm,md->rd", low, labels), derivative.dtype) * row_weights
        weighted = ops.cast(ops.cast(hidden, derivative.dtype) * row_weights, hidden.dtype)
        d_labels = ops.cast(ops.einsum("rm,rd->md", low, weighted), derivative.dtype)
        return d_hidden, d_labels, ()

    def pair_scores(self, hidden, labels, parameters):
        is_double = keras.backend.standardize_dtype(hidden.dtype) == "float64"
        scores = ops.einsum("...d,...sd->...s", hidden, labels)
        return ops.cast(scores, "float64" if is_double else "float32")

    def pair_gradients(self, derivative, hidden, labels, parameters):
        hidden, labels = ops.cast(hidden, derivative.dtype), ops.cast(labels, derivative.dtype)
        d_hidden = ops.einsum("...s,...sd->...d", derivative, labels)
        return d_hidden, derivative[..., None] * hidden[..., None, :], ()
