"""Small models of keras-hub's families, with random weights."""

import keras
import keras_hub
import numpy as np

V, T = 61, 7
_SIZES = {"vocabulary_size": V, "num_layers": 2, "hidden_dim": 12, "intermediate_dim": 14}
_GROUPED = {**_SIZES, "num_query_heads": 2, "num_key_value_heads": 1}
_GEMMA = {**_GROUPED, "head_dim": 6, "final_logit_soft_cap": 1.5}


def _llama(tied):
    return {**_GROUPED, "tie_word_embeddings": tied}


def _qwen(tied):
    return {**_llama(tied), "head_dim": 6}


# Name: the class without `Backbone` and `CausalLM`, and the backbone's arguments.
FAMILIES = {
    "gpt2": ("GPT2", {**_SIZES, "num_heads": 2, "max_sequence_length": 11}),
    "llama": ("Llama", _llama(False)),
    "llama3": ("Llama3", _llama(False)),
    "llama3 tied": ("Llama3", _llama(True)),
    "mistral": ("Mistral", _GROUPED),
    "mixtral": ("Mixtral", {**_GROUPED, "num_experts": 2, "top_k": 1}),
    "phi3": ("Phi3", _GROUPED),
    "qwen": ("Qwen", _llama(True)),
    "qwen3": ("Qwen3", _qwen(True)),
    "qwen3 untied": ("Qwen3", _qwen(False)),
    "gemma": ("Gemma", {**_GROUPED, "head_dim": 6}),
    "gemma2": ("Gemma", {**_GEMMA, "sliding_window_size": 5, "use_sliding_window_attention": True}),
    "gemma3": ("Gemma3", {**_GEMMA, "image_size": 16, "sliding_window_size": 5}),
    "opt": ("OPT", {**_SIZES, "num_heads": 2, "max_sequence_length": 11}),
    "bloom": ("Bloom", {**_SIZES, "num_heads": 2}),
    "falcon": ("Falcon", {**_SIZES, "num_attention_heads": 2}),
    "gpt-neox": (
        "GPTNeoX",
        {**_SIZES, "hidden_dim": 16, "num_heads": 2, "rotary_percentage": 0.5},
    ),
    "gpt-oss": ("GptOss", {**_GROUPED, "num_experts": 2, "top_k": 1}),
}


FAMILIES = {  # those that this version of keras-hub has
    name: family
    for name, family in FAMILIES.items()
    if hasattr(keras_hub.models, f"{family[0]}CausalLM")
}


def causal_lm(name, preprocessor=None, **options):
    """A model that says something: its weights are larger than what it begins training with."""
    kind, arguments = FAMILIES[name]
    keras.utils.set_random_seed(7)
    backbone = getattr(keras_hub.models, f"{kind}Backbone")(**arguments, **options)
    random = np.random.default_rng(3)
    for variable in backbone.weights:
        noise = random.normal(size=variable.shape, scale=0.3)
        variable.assign(keras.ops.convert_to_numpy(variable) + noise)
    lm = getattr(keras_hub.models, f"{kind}CausalLM")
    return lm(backbone=backbone, preprocessor=preprocessor)


def batch(rows=5, seed=1):
    """Tokens with padding, targets and weights, as preprocessors give them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(2, T + 1, rows)
    tokens = random.integers(3, V, (rows, T + 1)).astype("int32")
    mask = np.arange(T + 1) < lengths[:, None]
    tokens = np.where(mask, tokens, 0).astype("int32")
    inputs = {"token_ids": tokens[:, :-1], "padding_mask": mask[:, :-1].astype("int32")}
    return inputs, tokens[:, 1:], mask[:, 1:].astype("float32")
