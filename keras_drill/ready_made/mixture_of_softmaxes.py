from typing import Any

import keras

from keras_drill.compositions import Mixture
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made.flat_config import flat_config
from keras_drill.types import Initializer


@keras.saving.register_keras_serializable(package="keras_drill")
class MixtureOfSoftmaxes(OutputLayer):
    """The mixture of softmaxes (MoS): `p = sum_k π_k softmax(E c_k + b)`.

    E are the labels (the output embeddings of the words) and b the biases. The weight π_k of
    component k and its context, the vector c_k, are computed from the hidden state; see
    `keras_drill.compositions.Mixture`. The layer returns log p for all words. The fused loss (see
    `keras_drill.OutputLayer`) stores the logits `E c_k + b` of all K components for one group of
    tokens (a tile) at a time.

    Args:
        vocabulary_size: Number of words V.
        embedding: The `keras.layers.Embedding` from which the labels are computed, usually the
            input embedding of the backbone. With `None`, the layer has its own label embeddings.
        num_mixtures: Number of components K.
        context_dim: Width of the contexts; `None` is the embeddings' width. Another width needs a
            `label_encoder` that maps the contexts, such as `keras_drill.BilinearLabelEncoder`.
        context_dropout: Dropout rate on the contexts. All time steps of a sequence share the mask.
        gated: Whether the contexts are the hidden states plus a gated part. The contexts must then
            be as wide as the hidden states. The gates are 0 at first, so a trained model whose
            output layer is replaced by this one (`LanguageModel.with_head`) keeps its
            probabilities.
        kernel_initializer: Initializer of the kernels that compute c_k and π_k.
        seed: Integer seed of the dropout masks, or `None` for a random seed.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `composition`.

    Example:

    >>> keras_drill.MixtureOfSoftmaxes(11, num_mixtures=3)(keras.ops.ones((2, 5))).shape
    TensorShape([2, 11])

    References:
        - [Yang et al., 2018](https://arxiv.org/abs/1711.03953)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: keras.layers.Embedding | None = None,
        num_mixtures: int = 15,
        context_dim: int | None = None,
        context_dropout: float = 0.0,
        gated: bool = False,
        kernel_initializer: Initializer = "glorot_uniform",
        seed: int | None = None,
        **kwargs: Any,
    ):
        composition = Mixture(
            num_mixtures=num_mixtures,
            context_dim=context_dim,
            context_dropout=context_dropout,
            gated=gated,
            kernel_initializer=kernel_initializer,
            seed=seed,
            dtype=kwargs.get("dtype"),
        )
        super().__init__(vocabulary_size, embedding, composition=composition, **kwargs)

    def get_config(self) -> dict:
        return flat_config(super().get_config(), "composition", self.composition)
