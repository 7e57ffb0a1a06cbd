"""Measures tokens per second of greedy decoding and beam search, and the memory bandwidth used."""

from collections.abc import Iterator

import numpy as np

from benchmarks.accelerator.measure_jax import check_errors, device, measure, stateless
from benchmarks.accelerator.processes import attempt
from benchmarks.accelerator.training_jax import SMALL, make_model, sample_batch

__all__ = ["device", "rows"]

# By default XLA launches each kernel of a loop separately, and the host reads the loop's condition.
# With these options a GPU runs the whole loop as one CUDA graph.
ONE_GRAPH = {"xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,WHILE"}
BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second
BEAMS = 5


def rows(sizes: dict, batches: list, length: int, rounds: int) -> Iterator:
    """The Transformer with all weights in bfloat16 writes `length` tokens after one.

    For a step it must read its weights, and the keys and values of the tokens before: of these the
    mean number is counted. Tokens of a beam search are those of its best sequence. Every search is
    measured as JAX compiles it by default and as one CUDA graph.

    Args:
        sizes: vocabulary, width, layers.
        batches: How many sequences are written at once.
        length: Tokens of each.
        rounds: How often each search is timed.
    """
    import keras

    from keras_drill.decoding import BeamSearch, GreedySampler

    searches = {"greedy": GreedySampler(), f"beam {BEAMS}": BeamSearch(BEAMS)}
    for suffix, options in (("", None), (", one graph", ONE_GRAPH)):
        keras.config.set_dtype_policy("float32")
        checked = attempt(check, options)
        yield f"errors{suffix}", checked
        if "skipped" in checked:
            continue
        keras.config.set_dtype_policy("bfloat16")
        model, _ = make_model("transformer", "tied", sizes)
        for name, search in searches.items():
            for batch in batches:
                found = attempt(_measure, model, search, options, sizes, batch, length, rounds)
                yield f"{name}, batch {batch}{suffix}", found


def decode(model, search, options: dict | None):
    """A jitted function of the model's values and a buffer `[B, L]` with one token in each row.

    `options` are compiler options of JAX, or `None`.
    """
    import jax

    from keras_drill.decoding import LanguageModelStep

    step = LanguageModelStep(model)

    def run(tokens):
        return search(step, tokens, lengths=[1] * len(tokens))

    called = stateless(run, model.variables)
    return jax.jit(lambda values, tokens: called(values, tokens)[0], compiler_options=options)


def _measure(model, search, options, sizes, batch, length, rounds) -> dict:
    values = [x.value for x in model.variables]
    tokens = np.zeros((batch, length + 1), "int32")
    tokens[:, 0] = np.arange(1, batch + 1)
    found = measure(decode(model, search, options), (values, tokens), rounds)
    seconds = 1e-3 * found["ms"]
    found["tokens_s"] = batch * length / seconds
    weights = sum(x.nbytes for x in values)
    cache = 2 * 2 * sizes["layers"] * sizes["width"] * (length + 1) / 2  # of a row, in bfloat16
    found["bytes"] = weights + batch * search.num_beams * cache
    for name, bandwidth in BANDWIDTHS.items():
        if name in device():
            found["of_bandwidth"] = found["bytes"] * length / (bandwidth * seconds)
    return found


def check(options: dict | None) -> dict:
    """A small model's words and log-probabilities are those of the whole sequences."""
    import jax

    from keras_drill.decoding import BeamSearch, GreedySampler

    model, _ = make_model("transformer", "tied", SMALL)
    values = [x.value for x in model.variables]
    tokens = sample_batch(SMALL)[0] * 0 + np.arange(1, SMALL["batch"] + 1)[:, None]
    whole = jax.jit(stateless(model, model.variables))
    with jax.default_matmul_precision("highest"):
        words = np.asarray(decode(model, GreedySampler(), options)(values, tokens).tokens)
        log_probs = np.asarray(whole(values, words)[0], "float64")[:, :-1]
        beams = decode(model, BeamSearch(BEAMS), options)(values, tokens)
        best = np.asarray(beams.tokens)[:, 0]
        of_best = np.asarray(whole(values, best)[0], "float64")[:, :-1]
    of_best = np.take_along_axis(of_best, best[:, 1:, None], axis=-1)[..., 0].sum(axis=-1)
    chosen = np.take_along_axis(log_probs, words[:, 1:, None], axis=-1)[..., 0]
    errors = {
        "greedy": float((log_probs.max(axis=-1) - chosen).max()),
        "beams": float(np.abs(np.asarray(beams.log_probs)[:, 0] - of_best).max()),
    }
    return {"errors": check_errors(errors, 1e-3)}
