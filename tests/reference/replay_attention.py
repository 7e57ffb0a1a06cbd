import numpy as np
from keras import ops

import keras_drill
from keras_drill.layers import AdditiveScore, Attention, GeneralScore

# The weights of each score by their names in a case, and which query it is asked with.
SCORES = {
    "bahdanau": (lambda units, **k: AdditiveScore(units, **k), "query"),
    "bahdanau_norm": (lambda units, **k: AdditiveScore(units, normalized=True, **k), "query"),
    "luong": (lambda units, **k: GeneralScore(**k), "luong_query"),
    "luong_scaled": (lambda units, **k: GeneralScore(scaled=True, **k), "luong_query"),
}
WEIGHTS = {
    "query_kernel": "query_kernel",
    "memory_kernel": "memory_kernel",
    "v": "v",
    "g": "g",
    "scale": "g",
    "bias": "b",
}


def replay_attention(case: dict, dtype: str) -> dict:
    """Alignments of every score, and the losses of a sequence."""
    memory = ops.cast(case["memory"], dtype)
    mask = np.arange(memory.shape[1])[None] < case["lengths"][:, None]
    results = {}
    for name, (make, query_name) in SCORES.items():
        units = case[f"{name}_memory_kernel"].shape[1]
        query = ops.cast(case[query_name][:, None], dtype)
        attention = Attention(make(units, dtype=dtype), dtype=dtype)
        attention.build(query.shape, memory.shape)
        for variable in attention.weights:
            variable.assign(case[f"{name}_{WEIGHTS[variable.name]}"])
        _, alignments = attention(query, attention.project(memory, mask))
        results[f"{name}_alignments"] = (alignments[:, 0], case[f"{name}_alignments"])
    # Logits are scores of hidden states with the unit vectors.
    head = keras_drill.OutputLayer(case["loss_logits"].shape[-1], use_bias=False, dtype=dtype)
    logits = ops.cast(case["loss_logits"], dtype)
    head.build(logits.shape)
    head.label_embeddings.assign(np.eye(logits.shape[-1]))
    arguments = logits, case["loss_targets"], case["loss_weights"]
    mean = head.loss(*arguments, reduction="mean_with_sample_weight")
    losses = ops.convert_to_numpy(head.loss(*arguments, reduction="none"))
    per_row = losses.sum(1) / case["loss_weights"].sum(1)
    results["sequence_loss"] = (mean, case["sequence_loss"])
    results["sequence_loss_per_batch"] = (per_row, case["sequence_loss_per_batch"])
    return results
