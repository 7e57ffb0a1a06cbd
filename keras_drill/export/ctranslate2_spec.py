"""Transformers of this package as model specifications of CTranslate2."""

from types import ModuleType
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.compositions import Softmax
from keras_drill.layers.transformer_layer import TransformerLayer
from keras_drill.layers.transformer_stack import TransformerStack
from keras_drill.models import Transformer, TransformerLanguageBackbone
from keras_drill.output_layer import OutputLayer
from keras_drill.scores import InnerProduct
from keras_drill.senses import SenseEmbedding

# Keras' names of activations, and those of CTranslate2.
_ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "silu": "SWISH",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
}


def import_ctranslate2() -> ModuleType:
    """Returns the module ctranslate2, or raises an error that says how to install it."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ImportError(
            "Exporting to CTranslate2 needs the library ctranslate2: "
            f"pip install 'keras-drill[ctranslate2]'. Received: {error}"
        ) from error
    return ctranslate2


def make_spec(model: Any, max_length: int) -> Any:
    """Makes the specification of a model, without vocabularies.

    Args:
        model: A built model with a `backbone` and a `head`.
        max_length: Number of positions to export if they are sinusoidal. Learned positions are
            exported unchanged.

    Returns:
        A `ctranslate2.specs.TransformerSpec`, or a `TransformerDecoderModelSpec` for a language
        model.

    Raises:
        ImportError: ctranslate2 is not installed.
        ValueError: CTranslate2 does not support a part of the model.
    """
    backbone = model.backbone
    check_backbone(backbone)
    labels, bias = fold_labels(model.head)
    specs = import_ctranslate2().specs
    options = {
        "pre_norm": backbone.norm_first,
        "activation": specs.Activation[_ACTIVATIONS[_activation_name(backbone)]],
    }
    if isinstance(backbone, Transformer):
        layers = (backbone.encoder.num_layers, backbone.decoder.num_layers)
        spec = specs.TransformerSpec.from_config(layers, backbone.num_heads, **options)
        _set_stack(spec.encoder, backbone.encoder, spec.encoder.embeddings[0], max_length)
    else:
        spec = specs.TransformerDecoderModelSpec.from_config(
            backbone.num_layers, backbone.num_heads, **options
        )
    _set_stack(spec.decoder, backbone.decoder, spec.decoder.embeddings, max_length)
    spec.decoder.embeddings.weight = spec.decoder.embeddings.weight[: len(labels)]
    spec.decoder.projection.weight = labels
    spec.decoder.projection.bias = bias
    if model.head.logit_soft_cap:
        spec.decoder.final_logit_softcapping = np.float32(model.head.logit_soft_cap)
    spec.config.layer_norm_epsilon = backbone.decoder.transformer_layers[0].layer_norm_epsilon
    return spec


def check_backbone(backbone: Any) -> None:
    """Raises `ValueError` if CTranslate2 does not support a backbone."""
    # Subclasses may compute something else.
    if type(backbone) not in (Transformer, TransformerLanguageBackbone):
        raise ValueError(
            "CTranslate2 needs a model whose backbone is a keras_drill.models.Transformer or "
            "TransformerLanguageBackbone; export other models as a SavedModel. "
            f"Received: {type(backbone).__name__}"
        )
    if not backbone.built:
        raise ValueError("`model` must be built. Received: a model without weights")
    name = _activation_name(backbone)
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"CTranslate2 needs a Transformer whose `activation` is one of {list(_ACTIVATIONS)}. "
            f"Received: activation={name!r}"
        )
    if isinstance(backbone.embedding, SenseEmbedding):
        raise ValueError(
            "CTranslate2 needs an `embedding` with one vector for each word. "
            "Received: a SenseEmbedding, which has several"
        )
    if backbone.quantized_layers:
        raise ValueError(
            "`model` must not be quantized: export the model as it was trained, and let "
            '`quantization="int8"` quantize it. '
            f"Received: quantized layers {sorted(backbone.quantized_layers)[:3]}"
        )


def fold_labels(head: OutputLayer) -> tuple[np.ndarray, np.ndarray]:
    """Returns the labels and biases with which a plain softmax equals an output layer.

    The labels include the label encoder's network, and a linear map of hidden states if there is
    one.

    Args:
        head: A built output layer with one label for each word.

    Returns:
        Labels `[V, d]` and biases `[V]`: the scores of hidden states `h` are `h @ labels.T + bias`.

    Raises:
        ValueError: The probabilities are not a softmax over such scores.
    """
    for part, kind in {"composition": Softmax, "score": InnerProduct}.items():
        if type(getattr(head, part)) is not kind:
            raise ValueError(
                f"The output layer cannot be folded into a matrix: its `{part}` must be a "
                f"{kind.__name__}; export the model as a SavedModel. "
                f"Received: {part}={type(getattr(head, part)).__name__}"
            )
    folded = head.folded()
    size = head.vocabulary_size
    labels = _array(folded.embeddings)[:size]
    bias = np.zeros(size, "float32") if folded.bias is None else _array(folded.bias)[:size]
    network = folded.label_encoder.hidden_network
    if network is None:
        return labels, bias
    if not _is_linear(network):
        raise ValueError(
            "The output layer cannot be folded into a matrix, because its label encoder maps "
            "hidden states by a nonlinear network; export the model as a SavedModel. "
            f"Received: label_encoder={type(head.label_encoder).__name__}"
        )
    width = head.hidden_shape[-1]
    offset = _array(network(ops.zeros((1, width))))
    kernel = _array(network(ops.eye(width))) - offset  # [d, d_j]
    return labels @ kernel.T, bias + (labels @ offset.T)[:, 0]


def _is_linear(network: keras.layers.Layer) -> bool:
    is_dense = isinstance(network, keras.layers.Dense)
    return is_dense and network.activation in (None, keras.activations.linear)


def _activation_name(backbone: Any) -> str:
    name = keras.activations.serialize(backbone.activation)
    return name if isinstance(name, str) else str(name)


def _set_stack(spec: Any, stack: TransformerStack, embeddings: Any, max_length: int) -> None:
    embeddings.weight = _array(_read_words(stack.embedding))
    spec.scale_embeddings = stack.scale_embedding
    # The layer itself makes the positions; `call` does so in float32, whatever the layer's dtype.
    shape = (1, stack.max_length or max_length, stack.embedding.output_dim)
    spec.position_encodings.encodings = _array(stack.positional_encoding.call(ops.zeros(shape)))[0]
    if stack.final_norm is not None:
        _set_norm(spec.layer_norm, stack.final_norm)
    for layer_spec, layer in zip(spec.layer, stack.transformer_layers, strict=True):
        _set_layer(layer_spec, layer)


def _read_words(embedding: keras.layers.Embedding) -> Any:
    """Returns the input embeddings `[V, d]` of all words."""
    if embedding.quantization_mode is None:
        return embedding.embeddings
    return embedding(ops.arange(embedding.input_dim))


def _set_layer(spec: Any, layer: TransformerLayer) -> None:
    _set_attention(spec.self_attention, layer.self_attention)
    _set_norm(spec.self_attention.layer_norm, layer.self_attention_norm)
    if layer.attends_source:
        _set_attention(spec.attention, layer.source_attention)
        _set_norm(spec.attention.layer_norm, layer.source_attention_norm)
    _set_linear(spec.ffn.linear_0, layer.inner)
    _set_linear(spec.ffn.linear_1, layer.outer)
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_norm)


def _set_attention(spec: Any, attention: keras.layers.MultiHeadAttention) -> None:
    width = attention.output_dense.kernel.shape[-1]
    inputs = [
        (_array(layer.kernel).reshape(width, -1).T, _array(layer.bias).reshape(-1))
        for layer in (attention.query_dense, attention.key_dense, attention.value_dense)
    ]
    output = _array(attention.output_dense.kernel).reshape(-1, width).T
    outputs = [(output, _array(attention.output_dense.bias))]
    # Self-attention has queries, keys and values in one matrix, attention to the source has two.
    groups = [inputs, outputs]
    if len(spec.linear) == 3:
        groups = [inputs[:1], inputs[1:], outputs]
    for linear, group in zip(spec.linear, groups, strict=True):
        linear.weight, linear.bias = (np.concatenate(parts) for parts in zip(*group, strict=True))


def _set_linear(spec: Any, layer: keras.layers.Dense) -> None:
    spec.weight, spec.bias = np.ascontiguousarray(_array(layer.kernel).T), _array(layer.bias)


def _set_norm(spec: Any, layer: keras.layers.LayerNormalization) -> None:
    spec.gamma, spec.beta = _array(layer.gamma), _array(layer.beta)


def _array(value: Any) -> np.ndarray:
    """Converts a variable or tensor to a float32 array."""
    return np.asarray(ops.convert_to_numpy(ops.cast(value, "float32")))
