import keras
import numpy as np

import keras_drill
from tests.gradients import value_and_gradients


def replay_drill(case: dict, dtype: str) -> dict:
    """Everything that a `drill_*` case holds, computed by `OutputLayer` with DRILL labels."""
    setting = {
        name: case[name].reshape(-1)[0]
        for name in ("depth", "activation", "residual_to_previous", "residual_to_input", "dual")
    }
    vocabulary_size, width = case["embeddings"].shape
    embedding = keras.layers.Embedding(vocabulary_size, width, dtype=dtype)
    head = keras_drill.OutputLayer(
        vocabulary_size,
        embedding=embedding,
        label_encoder=keras_drill.ResidualLabelEncoder(
            depth=int(setting["depth"]),
            activation=str(setting["activation"]),
            residual_to_previous=bool(setting["residual_to_previous"]),
            residual_to_input=bool(setting["residual_to_input"]),
            dual=bool(setting["dual"]),
            dtype=dtype,
        ),
        tile_size=3,
        dtype=dtype,
    )
    hidden = case["hidden"].astype(dtype)
    head.build(hidden.shape)
    variables = {"embeddings": embedding.embeddings, "bias": head.bias}
    for side in ("label", "hidden"):
        network = getattr(head.label_encoder, f"{side}_network")
        for i in range(head.label_encoder.depth if network is not None else 0):
            variables[f"{side}_kernel_{i}"] = network.kernels[i]
            variables[f"{side}_bias_{i}"] = network.biases[i]
    for name, variable in variables.items():
        variable.assign(case[name])

    loss, gradients, d_hidden = value_and_gradients(
        lambda hidden: head.loss(hidden, case["targets"]), list(variables.values()), hidden
    )
    context = head.label_encoder.encode_hidden(hidden)
    labels = head.encoded_labels()
    results = {
        "encoded_labels": labels,
        "encoded_hidden": context,
        "logits": np.asarray(context) @ np.asarray(labels).T + np.asarray(head.bias),
        "loss": loss,
        "grad_hidden": d_hidden,
    }
    for name, gradient in zip(variables, gradients, strict=True):
        results[f"grad_{name}"] = gradient
    unchecked = {name for name in case if name.startswith("grad_")} - set(results)
    if unchecked:
        raise ValueError(f"the case holds results that nothing computes. Received: {unchecked}")
    # Not every case holds every gradient (the hidden network's, say).
    compared = {name: (value, case[name]) for name, value in results.items() if name in case}
    log_normalizer = np.log(np.exp(case["logits"]).sum(-1, keepdims=True))
    compared["log_probs"] = (head(hidden), case["logits"] - log_normalizer)
    return compared
