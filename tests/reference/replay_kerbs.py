import numpy as np
from keras import ops

from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.losses import weighted_loss
from keras_drill.scores import KerBSKernel
from tests.gradients import value_and_gradients


def replay_kerbs_kernel(case: dict, dtype: str) -> dict:
    """Value and derivatives of the paper's kernel, relative to `max(1, |x|)` entry by entry."""
    kernel = KerBSKernel()
    theta = ops.convert_to_tensor(case["theta"][:, None].astype(dtype))
    cos = ops.convert_to_tensor(case["cos"][None].astype(dtype))
    results = {
        "kernel": kernel.value(theta, cos),
        "d_kernel_d_theta": kernel.derivative_by_theta(theta, cos),
        "d_kernel_d_cos": kernel.derivative_by_cos(theta, cos),
    }
    compared = {}
    for name, value in results.items():
        size = np.maximum(1, np.abs(case[name]))
        compared[name] = (
            1 + np.asarray(value, "float64") / size - case[name] / size,
            np.ones_like(size),
        )
    return compared


def replay_kerbs(case: dict, dtype: str, variant: str) -> dict:
    """Everything that a `kerbs_paper_*` or `kerbs_reference_*` case holds, by score and walk."""
    score = KerBSKernel(variant)
    hidden, labels, theta = (
        case[name].astype(dtype) for name in ("hidden", "sense_embeddings", "theta")
    )
    sense_to_word, targets = case["sense_to_word"], case["targets"]
    senses = [np.flatnonzero(sense_to_word == word) for word in targets]
    columns = np.zeros((len(targets), max(map(len, senses))), "int32")
    mask = np.zeros(columns.shape, bool)
    for n, found in enumerate(senses):
        columns[n, : len(found)], mask[n, : len(found)] = found, True

    def loss(hidden, labels, theta):
        inputs = WalkInputs(hidden[:, None], None, labels, None, (theta,), columns, mask)
        options = WalkOptions(score, compute_dtype=dtype, tile_size=3)
        return weighted_loss(inputs, options)[0] / len(targets)

    value, _, *gradients = value_and_gradients(loss, [], hidden, labels, theta)
    scores = np.asarray(score.scores(*map(ops.convert_to_tensor, (hidden, labels)), (theta,)))
    sense_log_probs = np.asarray(ops.log_softmax(scores), "float64")
    word_probs = np.zeros((len(targets), int(case["vocabulary_size"])))
    np.add.at(word_probs.T, sense_to_word, np.exp(sense_log_probs).T)
    results = {
        "scores": scores,
        "sense_log_probs": sense_log_probs,
        "sense_probs": np.exp(sense_log_probs),
        "word_log_probs": np.log(word_probs),
        "loss": value,
        **dict(zip(("grad_hidden", "grad_sense_embeddings", "grad_theta"), gradients, strict=True)),
    }
    return {name: (value, case[name]) for name, value in results.items() if name in case}
