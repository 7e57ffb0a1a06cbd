"""Recurrent encoder–decoders: against loops with Keras' cells, padding, decoding, saving."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import LanguageModelStep
from keras_drill.layers import (
    AdditiveScore,
    Attention,
    DotScore,
    MonotonicWindow,
    MultiHeadSourceAttention,
    PredictiveWindow,
)
from keras_drill.models import RecurrentEncoderDecoder
from tests.gradients import value_and_gradients

V, D, H, B, S, T = 31, 5, 7, 3, 6, 4
SIZES = {"embedding_dim": D, "units": H, "seed": 1}


def batch(seed=0):
    """Source and target with 0, 1 and 2 words of padding."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(1, V, (B, S)), rng.integers(1, V, (B, T))
    for row in range(B):
        source[row, S - row :] = 0
        target[row, T - row :] = 0
    return {"source": source.astype("int32"), "target": target.astype("int32")}


def additive():
    return Attention(AdditiveScore(3, normalized=True), PredictiveWindow(2))


def senses():
    """Words of one to four senses, in no order."""
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=67, name="senses")
    counts = np.resize([1, 3, 4, 1, 2, 2], V)
    counts[-1] += 67 - counts.sum()
    rng = np.random.default_rng(6)
    embedding.allocation.assign(rng.permutation(np.repeat(np.arange(V), counts)))
    return embedding


VARIANTS = {
    "plain": lambda: {"cell": "gru", "bidirectional": False, "reverse_source": True},
    "general": lambda: {"attention": Attention(), "num_layers": 2, "source_vocabulary_size": 37},
    "dot": lambda: {
        "attention": Attention(DotScore(), MonotonicWindow(2)),
        "bidirectional": False,
        "reverse_source": True,
        "num_layers": 2,
        "num_encoder_layers": 1,
    },
    "end last": lambda: {
        "attention": MultiHeadSourceAttention(2, 3, shared_value=True),
        "bidirectional": False,
        "reverse_source": True,
        "source_end_last": True,
        "num_layers": 2,
    },
    "fed additive": lambda: {"attention": additive(), "input_feeding": True},
    "fed heads": lambda: {
        "attention": MultiHeadSourceAttention(2, 3),
        "cell": "gru",
        "input_feeding": True,
        "num_encoder_layers": 2,
    },
    "posterior": lambda: {
        "attention": additive(),
        "embedding": senses(),
        "source_vocabulary_size": 37,
        "num_layers": 2,
    },
    "posterior, fed": lambda: {
        "attention": Attention(),
        "embedding": senses(),
        "source_vocabulary_size": 37,
        "cell": "gru",
        "input_feeding": True,
    },
    "posterior, no attention": lambda: {
        "embedding": senses(),
        "source_vocabulary_size": 37,
        "cell": "gru",
    },
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def make(variant, **options):
    backbone = RecurrentEncoderDecoder(V, **{**SIZES, **VARIANTS[variant](), **options})
    backbone.build({"source": (None, None), "target": (None, None)})
    rng = np.random.default_rng(2)
    for weight in backbone.trainable_variables:  # biases too
        weight.assign(rng.normal(size=weight.shape) / 2)
    return backbone


def compiled(function):
    """On JAX, where loops are compiled at every call, the function is, once and for all."""
    if keras.backend.backend() != "jax":
        return function
    import jax

    # A function of its own: JAX would take up what it compiled of a model with other weights.
    return jax.jit(lambda *arguments: function(*arguments))


def run_cell(layer, x, state):
    """One step of one sequence in float64, `[d]`, and the new state: Keras' gates written out."""
    w, u, b = (np.asarray(v, "float64") for v in layer.get_weights())
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    if layer.num_states == 2:
        h, c = state
        i, f, g, o = np.split(x @ w + h @ u + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]
    (h,) = state
    (xz, xr, xn), (hz, hr, hn) = np.split(x @ w + b[0], 3), np.split(h @ u + b[1], 3)
    z, r = sigmoid(xz + hz), sigmoid(xr + hr)
    return [z * h + (1 - z) * np.tanh(xn + r * hn)]


def embed(embedding, word, context):
    """A word's embedding `[d]` in float64; of several senses, the mean by their posterior."""
    table = np.asarray(embedding.embeddings, "float64")
    if not isinstance(embedding, keras_drill.SenseEmbedding):
        return table[word]
    chosen = np.flatnonzero(np.asarray(embedding.allocation.sense_to_word) == word)
    labels, theta = table[chosen], np.asarray(embedding.score_parameters[0], "float64")[chosen]
    products, norms = labels @ context, np.linalg.norm(labels, axis=-1) * np.linalg.norm(context)
    cos = products / np.where(norms == 0, 1, norms)
    a = -theta / (2 * (np.exp(-theta) + theta - 1))
    weights = np.exp(norms * (a * np.exp(-theta * cos) - a))
    return weights @ labels / weights.sum()


def literal(backbone, attend, source, target):
    """Hidden states `[T, d]` of one pair without padding, in loops over time and layers."""
    encoder, decoder = backbone.encoder, backbone.decoder
    x = np.asarray(encoder.embedding.embeddings, "float64")[source]
    all_states = []
    for directions in encoder.directions:
        outputs, last = [], []
        for i, layer in enumerate(directions):
            backwards = encoder.reverse != bool(i)
            state, found = [np.zeros(H)] * layer.num_states, []
            rows = range(len(x))[::-1] if backwards else range(len(x))
            if encoder.end_last:
                rows = [*rows[1:], rows[0]]
            for row in rows:
                state = run_cell(layer, x[row], state)
                found.append(state[0])
            outputs.append(np.array(found)[np.argsort(rows)])
            last.append(state)
        x = np.concatenate(outputs, axis=-1)
        all_states.append([np.concatenate(parts) for parts in zip(*last, strict=True)])
    states = []
    bridges = iter(decoder.bridges)
    for i in range(len(decoder.recurrent_layers)):
        started = all_states[min(i, len(all_states) - 1)]
        if decoder.bridges:
            weights = [[np.asarray(w, "float64") for w in next(bridges).weights] for _ in started]
            started = [s @ w + b for s, (w, b) in zip(started, weights, strict=True)]
            started[0] = np.tanh(started[0])
        states.append(started)
    memory, mask = np.zeros((1, S, x.shape[-1]), "float32"), np.arange(S)[None] < len(x)
    memory[0, : len(x)] = x  # of one shape, which is compiled once
    kernel = np.asarray(decoder.attentional_state.dense.kernel, "float64")
    hidden, fed = [], np.zeros(D)
    for t, word in enumerate(target):
        read = embed(decoder.embedding, word, fed)
        read = np.concatenate([read, fed]) if backbone.input_feeding else read
        for i, layer in enumerate(decoder.recurrent_layers):
            states[i] = run_cell(layer, read, states[i])
            read = states[i][0]
        if backbone.attention is not None:
            context = attend(read[None, None].astype("float32"), memory, mask, np.array([[t]]))
            read = np.concatenate([ops.convert_to_numpy(context)[0, 0], read])
        fed = np.tanh(read @ kernel)
        hidden.append(fed)
    return np.array(hidden)


@every_variant
def test_equals_loops_and_padding_and_the_rest_of_the_batch_change_nothing(variant):
    backbone, inputs = make(variant), batch()
    wider = {name: np.pad(rows, [(0, 0), (0, 3)]) for name, rows in inputs.items()}
    found = ops.convert_to_numpy(compiled(backbone)(wider))

    @compiled
    def attend(query, memory, mask, positions):
        source = backbone.attention.project(memory, mask)
        return backbone.attention(query, source, positions=positions)[0]

    for row in range(B):
        source, target = (inputs[name][row][inputs[name][row] > 0] for name in inputs)
        expected = literal(backbone, attend, source, target)
        np.testing.assert_allclose(found[row, : len(target)], expected, atol=2e-5)


def test_a_reversed_source_with_its_end_last_is_a_source_of_reversed_words():
    options = {"attention": None, "num_layers": 2, "cell": "gru"}
    last = make("end last", **options)
    forwards = make("end last", **options, reverse_source=False, source_end_last=False)
    inputs = batch()
    source = inputs["source"].copy()
    for row in source:
        length = np.count_nonzero(row)
        row[: length - 1] = row[: length - 1][::-1]
    expected = ops.convert_to_numpy(forwards({**inputs, "source": source}))
    np.testing.assert_allclose(last(inputs), expected, atol=1e-6)
    first = make("end last", **options, source_end_last=False)
    assert np.abs(ops.convert_to_numpy(first(inputs)) - expected).max() > 0.01


@every_variant
def test_one_word_at_a_time_equals_all_at_once(variant):
    backbone, inputs = make(variant), batch()
    expected = ops.convert_to_numpy(compiled(backbone)(inputs))
    begin = compiled(lambda source: backbone.begin_decoding({"source": source}, B, T))
    constants, cache = begin(inputs["source"])
    read = compiled(backbone.read_column)
    cache = keras.tree.map_structure(lambda x: ops.repeat(x, 2, axis=0), cache)  # two rows each
    for t in range(T):
        tokens = ops.convert_to_tensor(np.repeat(inputs["target"][:, t], 2))
        hidden, cache = read(tokens, constants, cache)
        counted = inputs["target"][:, t] != 0
        for rows in (hidden[::2], hidden[1::2]):
            rows = ops.convert_to_numpy(rows)
            np.testing.assert_allclose(rows[counted], expected[counted, t], atol=1e-5)


# Without a window, at whose edges the loss jumps.
FED = {
    "additive": ("plain", lambda: Attention(AdditiveScore(3, normalized=True)), True),
    "heads": ("plain", lambda: MultiHeadSourceAttention(2, 3), True),
    "posterior": ("posterior, no attention", lambda: Attention(AdditiveScore(3)), False),
    "posterior, fed": ("posterior, no attention", lambda: MultiHeadSourceAttention(2, 3), True),
    "posterior, no attention": ("posterior, no attention", lambda: None, False),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "additive",
        "heads",
        "posterior",
        "posterior, fed",
        "posterior, no attention",
    ],
)
def test_gradients_of_what_is_fed_back_along_random_directions(kind):
    variant, attention, is_fed = FED[kind]
    options = {"attention": attention(), "input_feeding": is_fed, "dropout": 0.2}
    backbone, inputs = make(variant, **options), batch()
    # The same words are dropped whenever the loss is computed.
    states = [(v, ops.convert_to_numpy(v)) for v in backbone.non_trainable_variables]
    rates = np.random.default_rng(3).normal(size=(B, T, D)).astype("float32")
    counted = (inputs["target"] != 0)[..., None].astype("float32")

    def loss(rates):
        return ops.sum(backbone(inputs, training=True) * rates * counted)

    variables = backbone.trainable_variables
    _, gradients, _ = value_and_gradients(loss, variables, rates)
    rng = np.random.default_rng(4)

    @compiled
    def loss_with(values):
        with keras.StatelessScope([*zip(variables, values, strict=True), *states]):
            return loss(rates)

    values = [ops.convert_to_numpy(variable) for variable in variables]
    for i, (variable, gradient) in enumerate(zip(variables, gradients, strict=True)):
        direction = rng.normal(size=gradient.shape).astype("float32")
        direction *= 1e-2 / np.linalg.norm(direction)
        ahead, behind = (
            float(loss_with([*values[:i], values[i] + step, *values[i + 1 :]]))
            for step in (direction, -direction)
        )
        np.testing.assert_allclose(
            (ahead - behind) / 2,
            np.sum(gradient * direction),
            rtol=2e-2,
            atol=1e-5,
            err_msg=variable.path,
        )
        if "key/bias" not in variable.path:  # it changes all scores alike
            assert np.abs(gradient).max() > 1e-3, variable.path


@pytest.mark.parametrize("variant", ["general", "fed heads"])
def test_dropout_is_the_same_at_all_steps_and_starts_from_the_seed(variant):
    first, second = (make(variant, dropout=0.3, num_layers=1) for _ in range(2))
    inputs = batch()
    again = [ops.convert_to_numpy(b(inputs, training=True)) for b in (first, second)]
    np.testing.assert_array_equal(*again)
    dropped = again[0] == 0
    assert dropped.any() and (dropped == dropped[:, :1]).all()
    assert not (ops.convert_to_numpy(first(inputs)) == 0).any()


def in_model(variant, **options):
    backbone = make(variant, **options)
    return keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, backbone.embedding))


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["plain", "fed additive"])
def test_trained_saved_and_loaded_it_is_the_same(variant, tmp_path):
    model, inputs = in_model(variant, dropout=0.1), batch()
    eagerly = keras.backend.backend() != "jax"  # which is faster once
    model.compile("sgd", run_eagerly=eagerly, metrics=[keras_drill.metrics.Perplexity()])
    targets = np.roll(inputs["target"], -1, axis=1)
    before = model.evaluate(inputs, targets, verbose=0, return_dict=True)
    counted = inputs["target"] != 0
    log_probs = ops.convert_to_numpy(compiled(model)(inputs))[counted]
    expected = -log_probs[np.arange(len(log_probs)), targets[counted]].mean()
    np.testing.assert_allclose(np.log(before["perplexity"]), expected, rtol=1e-5)
    model.fit(inputs, targets, epochs=2, verbose=0)
    assert model.evaluate(inputs, targets, verbose=0, return_dict=True)["loss"] < before["loss"]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.embedding is loaded.backbone.embedding
    assert loaded.backbone.get_config() == model.backbone.get_config()
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    found, expected = (ops.convert_to_numpy(compiled(m)(inputs)) for m in (loaded, model))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("variant", ["general", "fed additive"])
def test_config_makes_an_equal_backbone(variant):
    backbone = make(variant)
    again = RecurrentEncoderDecoder.from_config(backbone.get_config())
    assert again.get_config() == backbone.get_config()
    again.build({"source": (None, None), "target": (None, None)})
    assert [v.path for v in again.weights] == [v.path for v in backbone.weights]
    again.set_weights(backbone.get_weights())
    again, found = (ops.convert_to_numpy(compiled(b)(batch())) for b in (again, backbone))
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize(
    ("fed", "policy"),
    [(False, "mixed_bfloat16"), (True, "mixed_bfloat16"), (True, "mixed_float16")],
)
@pytest.mark.parametrize("variant", ["plain", "posterior, no attention"])
def test_mixed_precision(fed, policy, variant):
    attention = Attention(AdditiveScore(3, dtype=policy), dtype=policy)
    backbone = make(variant, attention=attention, input_feeding=fed, dtype=policy)
    inputs = batch()

    def loss(rate):
        return rate * ops.sum(ops.cast(backbone(inputs, training=True), "float32"))

    _, gradients, _ = value_and_gradients(loss, backbone.trainable_variables, np.float32(1))
    for variable, gradient in zip(backbone.trainable_variables, gradients, strict=True):
        assert variable.dtype == "float32"
        assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0, variable.path
    found = ops.convert_to_numpy(ops.cast(backbone(inputs), "float32"))
    constants, cache = backbone.begin_decoding({"source": inputs["source"]}, B, T)
    hidden, _ = backbone.read_column(inputs["target"][:, 0], constants, cache)
    hidden = ops.convert_to_numpy(ops.cast(hidden, "float32"))
    np.testing.assert_allclose(hidden, found[:, 0], atol=5e-2)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
@pytest.mark.parametrize(
    ("variant", "compiled"),
    [
        ("dot", False),
        ("posterior, fed", False),
        ("posterior, fed", True),
        ("fed additive", True),
        ("fed additive", False),
    ],
)
def test_compiled_gradients_are_those_of_eager_steps(variant, compiled):
    import tensorflow as tf

    backbone = make(variant, num_layers=1)
    inputs = {name: tf.constant(rows) for name, rows in batch().items()}

    def gradients(inputs):
        with tf.GradientTape() as tape:
            hidden = backbone(inputs, training=True)
            loss = tf.reduce_sum(hidden**2)
        values = [v.value for v in backbone.trainable_variables]
        return [hidden, *map(tf.convert_to_tensor, tape.gradient(loss, values))]

    shapes = (
        {"source": (B, S), "target": (B, T)} if compiled else dict.fromkeys(inputs, (None,) * 2)
    )
    signature = [{name: tf.TensorSpec(shape, tf.int32) for name, shape in shapes.items()}]
    function = tf.function(
        gradients, jit_compile=compiled, autograph=False, input_signature=signature
    )
    for a, b in zip(function(inputs), gradients(inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_an_empty_source_and_an_empty_batch():
    for variant in ("general", "fed additive"):
        backbone, inputs = make(variant, num_layers=1), batch()
        inputs["source"][1] = 0
        assert np.isfinite(ops.convert_to_numpy(compiled(backbone)(inputs))).all()
        nothing = {name: rows[:0] for name, rows in inputs.items()}
        assert tuple(compiled(backbone)(nothing).shape) == (0, T, D)


@pytest.mark.parametrize("weighting", ["usage", "posterior"])
def test_senses_are_shared_with_the_head(weighting, tmp_path):
    senses = keras_drill.SenseEmbedding(V, D, num_senses=67, weighting=weighting)
    backbone = make("general", embedding=senses)
    head = keras_drill.KernelizedBayesianSoftmax(V, senses)
    model = keras_drill.SequenceToSequence(backbone, head)
    log_probs = ops.convert_to_numpy(compiled(model)(batch()))
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.allocation is loaded.backbone.embedding.allocation
    found = ops.convert_to_numpy(compiled(loaded)(batch()))
    np.testing.assert_array_equal(found, log_probs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": "rnn"}, "`cell` must be one of"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"num_encoder_layers": 0}, "`num_encoder_layers` must be at least 1"),
        ({"input_feeding": True}, "`input_feeding` needs `attention`"),
        ({"reverse_source": True}, "`reverse_source` must be False"),
        ({"source_end_last": True, "bidirectional": False}, "`source_end_last` needs"),
        ({"embedding": keras.layers.Embedding(V, 4)}, "`embedding` must have 31 words"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        RecurrentEncoderDecoder(V, **SIZES, **arguments)


def reversals(count, seed, length=5, words=11):
    """Sources of words 3, 4, ... of several lengths, and as labels the words backwards and 2."""
    rng = np.random.default_rng(seed)
    source = np.zeros((count, length), "int32")
    labels = np.zeros((count, length + 1), "int32")
    for row in range(count):
        size = rng.integers(1, length + 1)
        source[row, :size] = rng.integers(3, 3 + words, size)
        labels[row, : size + 1] = [*source[row, :size][::-1], 2]
    target = np.pad(labels, [(0, 0), (1, 0)], constant_values=1)[:, :-1]
    target[labels == 0] = 0
    return {"source": source, "target": target}, labels


@pytest.mark.slow
@pytest.mark.parametrize("feeding", [False, True])
def test_learns_to_reverse(feeding):
    keras.utils.set_random_seed(3)
    backbone = RecurrentEncoderDecoder(
        14, 32, units=48, attention=Attention(), input_feeding=feeding, seed=1
    )
    model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(14, backbone.embedding))
    epochs, steps = 15, 32
    rate = keras.optimizers.schedules.CosineDecay(0.01, epochs * steps)
    model.compile(keras.optimizers.Adam(rate))
    inputs, labels = reversals(64 * steps, seed=1)
    model.fit(inputs, labels, epochs=epochs, batch_size=64, verbose=0)
    inputs, labels = reversals(300, seed=2)
    tokens = np.zeros((300, 7), "int32")
    tokens[:, 0] = 1
    beams = keras_drill.decoding.BeamSearch(num_beams=3)(
        LanguageModelStep(model),
        tokens,
        np.ones(300, int),
        inputs={"source": inputs["source"]},
        end_token=2,
    )
    found = ops.convert_to_numpy(beams.tokens)[:, 0, 1:]
    assert (found == labels).all(axis=-1).mean() >= 0.99
