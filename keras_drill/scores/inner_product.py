import keras
from keras import ops

from keras_drill.ops.saturated import saturated
from keras_drill.scores.score import Score
from keras_drill.types import Tensor, Tensors


@keras.saving.register_keras_serializable(package="keras_drill")
class InnerProduct(Score):
    """Inner product of a hidden state and a label (output embedding), as in a `Dense` layer.

    This is the default of the argument `score` of `keras_drill.OutputLayer`.
    """

    is_linear = True

    def of_products(self, products: Tensor, hidden_terms: Tensors, label_terms: Tensors) -> Tensor:
        return products

    def product_gradients(
        self,
        derivative: Tensor,
        row_weights: Tensor,
        products: Tensor,
        hidden_terms: Tensors,
        label_terms: Tensors,
    ) -> tuple[Tensor, Tensors, Tensors]:
        return derivative, (), ()

    def pair_scores(self, hidden: Tensor, labels: Tensor, parameters: Tensors) -> Tensor:
        is_double = keras.backend.standardize_dtype(hidden.dtype) == "float64"
        scores = ops.einsum("...d,...sd->...s", hidden, labels)
        return saturated(scores, "float64" if is_double else "float32")

    def pair_gradients(
        self, derivative: Tensor, hidden: Tensor, labels: Tensor, parameters: Tensors
    ) -> tuple[Tensor, Tensor, Tensors]:
        hidden, labels = ops.cast(hidden, derivative.dtype), ops.cast(labels, derivative.dtype)
        d_hidden = ops.einsum("...s,...sd->...d", derivative, labels)
        return d_hidden, derivative[..., None] * hidden[..., None, :], ()
