import keras_drill
from tests.gradients import value_and_gradients


def replay_mos(case: dict, dtype: str) -> dict:
    """Everything that a `mos_*` case holds, computed by `MixtureOfSoftmaxes`."""
    vocabulary_size, width = case["output_kernel"].shape
    head = keras_drill.MixtureOfSoftmaxes(
        vocabulary_size,
        num_mixtures=int(case["num_mixtures"]),
        embedding_dim=width,
        tile_size=3,
        dtype=dtype,
    )
    hidden = case["hidden"].astype(dtype)
    head.build(hidden.shape)
    variables = {
        "prior_kernel": head.composition.prior_kernel,
        "latent_kernel": head.composition.latent_kernel,
        "latent_bias": head.composition.latent_bias,
        "output_kernel": head.embeddings,
        "output_bias": head.bias,
    }
    for name, variable in variables.items():
        variable.assign(case[name])
    loss, gradients, d_hidden = value_and_gradients(
        lambda hidden: head.loss(hidden, case["targets"]), list(variables.values()), hidden
    )
    results = {"log_probs": head(hidden), "loss": loss, "grad_hidden": d_hidden}
    for name, gradient in zip(variables, gradients, strict=True):
        results[f"grad_{name}"] = gradient
    unchecked = {name for name in case if name.startswith("grad_")} - set(results)
    if unchecked:
        raise ValueError(f"the case holds results that nothing computes. Received: {unchecked}")
    return {name: (value, case[name]) for name, value in results.items() if name in case}
