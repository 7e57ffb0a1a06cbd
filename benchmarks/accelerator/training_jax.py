"""Measures whole training steps of the package's models: loss, gradients, optimizer."""

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.accelerator.measure_jax import check_errors, device, relative_error, stateless
from benchmarks.accelerator.processes import attempt

__all__ = ["device", "rows"]

STEPS = 5  # that are timed together: none waits for the one before
SMALL = {"vocabulary": 53, "width": 16, "layers": 2, "units": 11, "batch": 3, "length": 7}


def rows(model: str, heads: list, sizes: dict, rounds: int) -> Iterator:
    """Milliseconds of a step in mixed bfloat16, tokens a second, and MiB beyond the state.

    An LSTM is a loop that XLA compiles. It is measured in float32 as well.

    Args:
        model: "transformer" or "awd-lstm".
        heads: "tied", "drill".
        sizes: vocabulary, width, layers, units, batch, length.
        rounds: How often `STEPS` steps are timed.
    """
    import keras

    keras.config.set_dtype_policy("float32")
    checked = attempt(check, model)
    yield "errors", checked
    if "skipped" in checked:
        return
    keras.config.set_dtype_policy("mixed_bfloat16")
    for head in heads:
        yield f"keras_drill, {head}", attempt(_measure, model, head, sizes, rounds)
    if model == "awd-lstm":
        keras.config.set_dtype_policy("float32")
        yield "keras_drill, tied, float32", attempt(_measure, model, "tied", sizes, rounds)


def make_model(model: str, head: str, sizes: dict, stateful: bool = True):
    """The language model and its optimizer."""
    import keras

    import keras_drill

    vocabulary, width, layers = sizes["vocabulary"], sizes["width"], sizes["layers"]
    if model == "transformer":
        backbone = keras_drill.models.TransformerLanguageBackbone(
            vocabulary,
            width,
            layers,
            num_heads=max(1, width // 64),
            feed_forward_dim=4 * width,
            norm_first=True,
            seed=1,
        )
        optimizer = keras.optimizers.Adam(1e-4)
    else:
        backbone = keras_drill.models.AWDLSTM(
            vocabulary,
            width,
            sizes["units"],
            layers,
            stateful=stateful,
            batch_size=sizes["batch"] if stateful else None,
            seed=1,
        )
        optimizer = keras.optimizers.SGD(1.0, global_clipnorm=0.25)
    if head == "drill":
        output = keras_drill.DrillOutput(vocabulary, backbone.embedding, depth=4, dropout=0.6)
    else:
        output = keras_drill.TiedOutput(vocabulary, backbone.embedding)
    language_model = keras_drill.LanguageModel(backbone, output)
    optimizer.build(language_model.trainable_variables)
    return language_model, optimizer


def sample_batch(sizes: dict, seed: int = 1) -> tuple:
    """Tokens and targets `[B, T]`, words as frequent as Zipf has them."""
    random = np.random.RandomState(seed)
    frequency = 1 / np.arange(1, sizes["vocabulary"] + 1)
    shape = sizes["batch"], sizes["length"] + 1
    ids = random.choice(sizes["vocabulary"], shape, p=frequency / frequency.sum()).astype("int32")
    return ids[:, :-1], ids[:, 1:]


def make_step(model, optimizer):
    """A function of `(trainable, other, optimizer's)` values and a batch, and these values."""
    import jax

    trainable, others = model.trainable_variables, model.non_trainable_variables
    called = stateless(model.compute_loss, [*trainable, *others])

    def loss(values, rest, tokens, targets):
        value, new = called([*values, *rest], tokens, targets)
        return value, new[len(values) :]

    def step(state, tokens, targets):
        values, rest, of_optimizer = state
        (value, rest), gradients = jax.value_and_grad(loss, has_aux=True)(
            values, rest, tokens, targets
        )
        values, of_optimizer = optimizer.stateless_apply(of_optimizer, gradients, values)
        return value, (values, rest, of_optimizer)

    variables = trainable, others, optimizer.variables
    return step, tuple([x.value for x in part] for part in variables)


def _measure(model, head, sizes, rounds) -> dict:
    import jax

    language_model, optimizer = make_model(model, head, sizes)
    step, state = make_step(language_model, optimizer)
    batch = [jax.numpy.asarray(x) for x in sample_batch(sizes)]
    compiled = jax.jit(step, donate_argnums=0).lower(state, *batch).compile()
    loss, state = compiled(state, *batch)
    found = {"loss": float(loss)}
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(STEPS):
            loss, state = compiled(state, *batch)
        jax.block_until_ready(loss)
        times.append(1e3 * (time.perf_counter() - start) / STEPS)
    found["ms"] = statistics.median(times[1:])
    found["tokens_s"] = 1e3 * sizes["batch"] * sizes["length"] / found["ms"]
    found["mib"] = compiled.memory_analysis().temp_size_in_bytes / 2**20
    return found


def check(model: str) -> dict:
    """The error of a small model's loss against that of its hidden states in NumPy."""
    import jax

    language_model, _ = make_model(model, "tied", SMALL, stateful=False)
    tokens, targets = sample_batch(SMALL)
    called = stateless(
        lambda: (
            language_model.compute_loss(tokens, targets, training=False),
            language_model.backbone(tokens, training=False),
        ),
        language_model.variables,
    )
    with jax.default_matmul_precision("highest"):
        (loss, hidden), _ = jax.jit(called)([x.value for x in language_model.variables])
    head = language_model.head
    labels, bias = (np.asarray(x, "float64") for x in (head.embeddings, head.bias))
    logits = np.asarray(hidden, "float64") @ labels.T + bias
    picked = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    exact = (np.log(np.exp(logits).sum(axis=-1)) - picked).mean()
    return {"errors": check_errors({"loss": relative_error([loss], [exact])}, 1e-5)}
