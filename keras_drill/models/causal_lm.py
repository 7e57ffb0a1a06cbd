"""The parts of a `CausalLM` of keras-hub that a language model uses."""

from typing import Any, NamedTuple

import keras

from keras_drill.ops.private_interfaces import all_layers, call_arguments, producer
from keras_drill.types import Tensor


class CausalLMParts(NamedTuple):
    """The parts of a `CausalLM` that compute its logits, `cap * tanh(hidden . labels / cap)`.

    Attributes:
        backbone: The backbone, which maps the model's inputs to hidden states `[B, T, d]`.
        embedding: The `ReversibleEmbedding` whose output table contains the labels (the output
            embeddings of the words).
        soft_cap: The bound `cap` of the logits; `None` if logits are not bounded.
        dtype: Dtype policy of the product `hidden . labels`.
    """

    backbone: keras.Model
    embedding: keras.layers.Embedding
    soft_cap: float | None
    dtype: keras.DTypePolicy


def parts_of(causal_lm: Any) -> CausalLMParts:
    """Finds the parts of a `CausalLM` by following the computation of its logits backwards.

    Raises:
        ImportError: keras-hub is not installed.
        ValueError: `causal_lm` is not a `CausalLM`, a `ReversibleEmbedding` does not compute its
            logits, or it has trainable quantised layers.
    """
    check_causal_lm(causal_lm)
    logits, soft_cap = _without_soft_cap(causal_lm.output)
    logits, end_slice = _without_slice(logits)
    layer = producer(logits)[0]
    if not (isinstance(layer, keras.layers.Embedding) and _is_reversed(logits)):
        raise ValueError(
            "`causal_lm` must compute its logits by a ReversibleEmbedding, "
            "`backbone.token_embedding(hidden, reverse=True)`. For other models use "
            "`keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(...))`. "
            f"Received: {type(causal_lm).__name__}, whose logits come from {layer!r}"
        )
    if None not in (soft_cap, layer.logit_soft_cap):
        raise ValueError(
            "`causal_lm` must have at most one soft cap of its logits: `logit_soft_cap` of its "
            "embedding, or a soft cap that the model applies afterwards. Received: "
            f"{layer.logit_soft_cap} in the layer {layer.name!r}, then {soft_cap}"
        )
    check_frozen_if_quantized(causal_lm.backbone)
    (hidden,) = producer(logits)[2]
    if end_slice is None and producer(hidden)[0] is causal_lm.backbone:
        backbone = causal_lm.backbone
    else:
        hidden = hidden if end_slice is None else hidden[end_slice]
        backbone = keras.Model(causal_lm.input, hidden, name=f"{causal_lm.backbone.name}_hidden")
    soft_cap = layer.logit_soft_cap if soft_cap is None else soft_cap
    return CausalLMParts(backbone, layer, soft_cap, _policy_of_product(layer))


def check_causal_lm(causal_lm: Any) -> None:
    """Raises `ValueError` if the model is not a `CausalLM` of keras-hub."""
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError(
            "`LanguageModel.from_causal_lm` needs keras-hub: "
            f"pip install 'keras-drill[pretrained]'. Received: {error}"
        ) from error
    if not isinstance(causal_lm, keras_hub.models.CausalLM):
        preset = f"keras_hub.models.CausalLM.from_preset({causal_lm!r})"
        hint = f", such as {preset}" if isinstance(causal_lm, str) else ""
        raise ValueError(
            f"`causal_lm` must be a keras_hub.models.CausalLM{hint}. Received: {causal_lm!r}"
        )


def check_frozen_if_quantized(backbone: keras.Model) -> None:
    """Raises `ValueError` for quantised layers that are not frozen and have no LoRA.

    Their kernels would stay constant while the rest of the model trains.
    """
    names = [
        layer.name
        for layer in all_layers(backbone)
        if not isinstance(layer, keras.Model)
        and getattr(layer, "quantization_mode", None) not in (None, "float8")
        and layer.trainable
        and not getattr(layer, "lora_enabled", False)
    ]
    if names:
        raise ValueError(
            "`causal_lm` must not have trainable quantised layers: quantised weights cannot train. "
            "Freeze the backbone by `causal_lm.backbone.trainable = False`, or add trainable "
            "weights by `causal_lm.backbone.enable_lora(rank)`. "
            f"Received: {len(names)} trainable quantised layers, such as {names[0]!r}"
        )


def _is_reversed(logits) -> bool:
    args, kwargs = call_arguments(logits)
    return bool(kwargs.get("reverse", args[1] if len(args) > 1 else False))


def _without_soft_cap(logits) -> tuple[Tensor, float | None]:
    """Returns the logits inside `cap * tanh(logits / cap)` and the cap, or the logits unchanged."""
    tensors = [logits]
    for names in (("Multiply",), ("Tanh",), ("Divide", "TrueDivide")):
        operation, _, inputs = producer(tensors[-1])
        if type(operation).__name__ not in names or len(inputs) != 1:
            return logits, None
        tensors += inputs
    outer, inner = _constant(logits), _constant(tensors[2])
    return (tensors[3], outer) if outer is not None and outer == inner else (logits, None)


def _constant(tensor) -> float | None:
    args, _ = call_arguments(tensor)
    numbers = [x for x in args if isinstance(x, int | float)]
    return float(numbers[0]) if len(numbers) == 1 else None


def _without_slice(logits):
    """Returns the logits inside `logits[:, n:, :]`, and the slices. If there are none, `None`.

    Models of images and text drop the positions of the image by such a slice.
    """
    operation, _, inputs = producer(logits)
    if type(operation).__name__ != "GetItem":
        return logits, None
    (whole,) = inputs
    args, kwargs = call_arguments(logits)
    return whole, kwargs.get("key", args[1] if len(args) > 1 else None)


def _policy_of_product(embedding) -> keras.DTypePolicy:
    """Returns the dtype policy in which the embedding, quantised or not, computes logits."""
    compute = embedding.reverse_dtype or embedding.compute_dtype
    is_mixed = embedding.variable_dtype == "float32" and compute in ("bfloat16", "float16")
    return keras.DTypePolicy(f"mixed_{compute}" if is_mixed else compute)
