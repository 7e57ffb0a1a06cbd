import logging

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.output_layer import losses
from tests.gradients import value_and_gradients

V, D, B, T = 31, 13, 5, 7

ENCODERS = {
    "identity": lambda **k: None,
    "bilinear": keras_drill.BilinearLabelEncoder,
    "dual": lambda **k: keras_drill.DualNonlinearLabelEncoder(17, **k),
    "residual": lambda **k: keras_drill.ResidualLabelEncoder(depth=3, dropout=0.3, **k),
    "variational": lambda **k: keras_drill.ResidualLabelEncoder(
        depth=2,
        activation="tanh",
        dropout=0.2,
        variational_dropout=True,
        residual_to_previous=True,
        dual=True,
        **k,
    ),
    "described": lambda **k: keras_drill.DescriptionLabelEncoder(
        np.random.default_rng(1).normal(size=(V, 11)), embedding_dropout=0.3, **k
    ),
}


def make_head(encoder="identity", tied=True, dtype="float32", **options):
    embedding = keras.layers.Embedding(V, D, dtype=dtype) if tied else None
    encoder = ENCODERS[encoder](dtype=dtype)
    head = keras_drill.OutputLayer(
        V, embedding=embedding, label_encoder=encoder, tile_size=8, dtype=dtype, **options
    )
    head.build((None, None, D))
    if head.use_bias:
        head.bias.assign(np.random.default_rng(3).normal(size=V))
    return head


def make_data(seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(B, T, D)).astype("float32")
    return hidden, rng.integers(0, V, (B, T)), rng.random((B, T)).astype("float32")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_log_probabilities_are_normalised_and_agree_with_loss_and_log_prob(encoder, tied):
    head = make_head(encoder, tied)
    hidden, targets, weights = make_data()
    log_probs = np.asarray(head(hidden), "float64")
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)
    chosen = np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(head.log_prob(hidden, targets), chosen, rtol=2e-5, atol=1e-5)
    loss = head.loss(hidden, targets, weights, training=False)
    np.testing.assert_allclose(loss, -(weights * chosen).mean(), rtol=1e-5)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean_with_sample_weight", "sum"])
@pytest.mark.parametrize("weighted", [True, False])
def test_reductions_are_those_of_keras(reduction, weighted):
    head = make_head("bilinear")
    hidden, targets, weights = make_data()
    weights = weights if weighted else None
    expected = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)(
        targets, head(hidden), weights
    )
    actual = head.loss(hidden, targets, weights, reduction=reduction)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_label_smoothing_is_that_of_keras():
    head = make_head("bilinear")
    hidden, targets, _ = make_data()
    expected = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)(
        np.eye(V)[targets], head(hidden)
    )
    actual = head.loss(hidden, targets, label_smoothing=0.1)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_losses_one_a_token():
    head = make_head()
    hidden, targets, weights = make_data()
    losses = head.loss(hidden, targets, weights, reduction="none")
    assert tuple(losses.shape) == (B, T)
    expected = -weights * np.asarray(head.log_prob(hidden, targets))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.parametrize("encoder", [name for name in ENCODERS if name != "identity"])
def test_fused_gradients_reach_every_variable_as_autodiff_does(encoder):
    head = make_head(encoder)
    hidden, targets, weights = make_data()
    variables = head.trainable_variables

    def materialised(hidden):
        chosen = ops.take_along_axis(head(hidden, training=False), targets[..., None], -1)
        return -ops.mean(weights * chosen[..., 0])

    def fused(hidden):
        hidden, words, flat = losses.check_tokens(head, hidden, targets, weights)
        inputs, _, flat, _ = losses.walk_inputs(head, hidden, words, flat, training=False)
        loss, *_ = keras_drill.fused_loss.losses.weighted_loss(inputs, head._options(), flat)
        return loss / (B * T)

    expected = value_and_gradients(materialised, variables, hidden)
    actual = value_and_gradients(fused, variables, hidden)
    for a, b in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6 + 1e-5 * np.abs(b).max())


def test_dropout_only_in_training_and_reproducible():
    hidden, targets, _ = make_data()
    heads = []
    for _ in range(2):
        keras.utils.set_random_seed(0)
        encoder = keras_drill.ResidualLabelEncoder(depth=2, dropout=0.5, seed=7)
        heads.append(keras_drill.OutputLayer(V, embedding_dim=D, label_encoder=encoder))
        heads[-1].build(hidden.shape)
    still = [float(heads[0].loss(hidden, targets, training=False)) for _ in range(2)]
    first = [float(head.loss(hidden, targets)) for head in heads]
    assert still[0] == still[1] != first[0]
    assert first[0] == first[1] != float(heads[0].loss(hidden, targets))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_folding_changes_no_probability_and_keeps_no_label_network(encoder):
    head = make_head(encoder, logit_soft_cap=5.0)
    folded = head.folded()
    hidden, targets, _ = make_data()
    np.testing.assert_allclose(folded(hidden), head(hidden), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        folded.log_prob(hidden, targets), head.log_prob(hidden, targets), rtol=1e-4, atol=1e-5
    )
    assert folded.label_encoder.label_network is None
    assert not folded.trainable_variables


def test_top_k_are_the_most_probable():
    head = make_head()
    hidden, _, _ = make_data()
    log_probs, words = head.top_k(hidden, 3)
    everything = np.asarray(head(hidden))
    np.testing.assert_array_equal(words, np.argsort(-everything, -1)[..., :3])
    np.testing.assert_allclose(log_probs, -np.sort(-everything, -1)[..., :3])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_gives_float32_results(policy):
    head = make_head("residual", dtype=policy)
    hidden, targets, _ = make_data()
    low = ops.cast(hidden, head.compute_dtype)
    assert keras.backend.standardize_dtype(head(low).dtype) == "float32"
    loss = head.loss(low, targets, training=False)
    full = make_head("residual")
    for a, b in zip(full.variables, head.variables, strict=True):
        a.assign(np.asarray(b.value))
    expected = full.loss(hidden, targets, training=False)
    np.testing.assert_allclose(loss, expected, rtol=2e-2)


@pytest.mark.parametrize("change", ["save", "clone", "config"])
def test_a_shared_embedding_stays_shared(change, tmp_path):
    embedding = keras.layers.Embedding(V, D, name="words")
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.LSTM(D, return_sequences=True)(embedding(tokens))
    head = keras_drill.DrillOutput(V, embedding, depth=2, name="head")
    model = keras.Model(tokens, head(hidden))
    if change == "save":
        model.save(tmp_path / "model.keras")
        other = keras.models.load_model(tmp_path / "model.keras")
        x = np.arange(B * T).reshape(B, T) % V
        np.testing.assert_allclose(other(x), model(x), rtol=1e-5, atol=1e-6)
    elif change == "clone":
        other = keras.models.clone_model(model)
    else:
        other = keras.Model.from_config(model.get_config())
    assert other.get_layer("head").embedding is other.get_layer("words")
    assert other.get_layer("words") is not embedding
    assert other.count_params() == model.count_params()


def test_targets_out_of_range_are_an_error():
    head = make_head()
    hidden, targets, weights = make_data()
    targets[1, 2] = V
    with pytest.raises(ValueError, match=r"`targets` must be .*Received: \[31\]"):
        head.loss(hidden, targets)
    with pytest.raises(ValueError, match=r"`targets` must be"):
        head.log_prob(hidden, targets)
    weights[1, 2] = 0
    assert np.isfinite(float(head.loss(hidden, targets, weights)))


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="AutoGraph")
def test_a_loop_of_ones_own_is_traced_without_complaint(caplog, monkeypatch):
    import tensorflow as tf

    head = keras_drill.SoftmaxOutput(V)
    hidden, targets = np.ones((T, D), "float32"), np.arange(T)
    head.build(hidden.shape)
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = head.loss(hidden, targets)
        return loss, tape.gradient(loss, head.trainable_variables)

    step()
    assert "AutoGraph" not in caplog.text


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
def test_targets_out_of_range_inside_compiled_functions():
    import tensorflow as tf

    head = make_head()
    hidden, targets, _ = make_data()
    targets[1, 2] = -1
    graph = tf.function(head.loss)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`targets` must be"):
        graph(tf.constant(hidden), tf.constant(targets))
    compiled = tf.function(head.loss, jit_compile=True)
    assert np.isnan(float(compiled(tf.constant(hidden), tf.constant(targets))))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: keras_drill.OutputLayer(0), "`vocabulary_size` must be a positive integer"),
        (lambda: keras_drill.OutputLayer(V, tile_size=0), "`tile_size`"),
        (lambda: keras_drill.OutputLayer(V, logit_soft_cap=-1.0), "`logit_soft_cap`"),
        (lambda: keras_drill.OutputLayer(V, logit_soft_cap=0.0), "`logit_soft_cap`"),
        (lambda: keras_drill.OutputLayer(V, z_loss=-1.0), "`z_loss`"),
        (lambda: keras_drill.OutputLayer(V, pad_labels_to=V - 1), "`pad_labels_to` must be at"),
        (lambda: keras_drill.OutputLayer(V, embedding="words"), "`embedding` must be a keras"),
        (
            lambda: keras_drill.OutputLayer(V, embedding=keras.layers.Embedding(V + 1, D)),
            "one row for each of the 31 labels.*Received: input_dim=32",
        ),
        (lambda: keras_drill.TiedOutput(V, None), "`embedding` must be"),
        (lambda: keras_drill.ResidualLabelEncoder(depth=0), "`depth` must be"),
        (lambda: keras_drill.ResidualLabelEncoder(units=0), "`units` must be"),
        (lambda: keras_drill.ResidualLabelEncoder(dropout=1.0), "`dropout` must be"),
        (lambda: keras_drill.ResidualLabelEncoder(dropout=-0.1), "`dropout` must be"),
        (lambda: keras_drill.DualNonlinearLabelEncoder(0), "`units` must be"),
        (
            lambda: keras_drill.OutputLayer(V, keras.layers.Embedding(V, D)).build((None, D + 2)),
            "widths must be equal.*Received: labels of width 13 and hidden states of width 15",
        ),
        (
            lambda: make_head().loss(*make_data()[:2], label_smoothing=1.0),
            "`label_smoothing` must be in",
        ),
        (
            lambda: make_head().loss(*make_data()[:2], label_smoothing=-0.1),
            "`label_smoothing` must be in",
        ),
        (lambda: make_head().loss(*make_data()[:2], reduction="median"), "`reduction` must be one"),
        (
            lambda: make_head().loss(make_data()[0], np.zeros((B, T + 1), int)),
            "`targets` must have",
        ),
        (lambda: make_head().top_k(make_data()[0], V + 1), r"`k` must be in \[1, 31\]"),
        (lambda: make_head().top_k(make_data()[0], 0), r"`k` must be in \[1, 31\]"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        make()


def test_the_least_values_of_arguments_are_taken():
    head = keras_drill.OutputLayer(V, tile_size=1, tile_bytes=1, pad_labels_to=V, embedding_dim=D)
    hidden, targets, _ = make_data()
    assert np.isfinite(float(head.loss(hidden, targets, label_smoothing=0.0)))
    assert head.top_k(hidden, V)[1].shape[-1] == V and head.top_k(hidden, 1)[1].shape[-1] == 1
    for encoder in (
        keras_drill.ResidualLabelEncoder(units=1, residual_to_input=False, dual=True),
        keras_drill.DualNonlinearLabelEncoder(1),
    ):
        head = keras_drill.OutputLayer(V, label_encoder=encoder)
        head.build((None, D))
        assert head.encoded_labels().shape == (V, 1)


@pytest.mark.usefixtures("tiles_of_a_cpu")
def test_tiles_grow_with_the_gradient_that_each_of_them_adds_to(monkeypatch):
    given, free = make_head(tile_bytes=1234), make_head()
    assert given._options().tile_bytes == 1234
    assert free._options().tile_bytes == 144 * 2**20
    monkeypatch.setattr(keras_drill.OutputLayer, "_least_tile_bytes", 1)
    assert free._options().tile_bytes == 4 * V * D * 3 // 8


@pytest.mark.parametrize("method", ["loss", "log_prob"])
def test_the_first_use_builds(method):
    hidden, targets, _ = make_data()
    getattr(keras_drill.SoftmaxOutput(V), method)(hidden, targets)


@pytest.mark.parametrize(
    "name, kind",
    [("label_encoder", "LabelEncoder"), ("score", "Score"), ("composition", "Composition")],
)
def test_parts_that_are_none_are_refused(name, kind):
    for value in ("drill", 3, keras.layers.Dense(D)):
        with pytest.raises(ValueError, match=rf"`{name}` must be a {kind}, such as .*Received: "):
            keras_drill.OutputLayer(V, **{name: value})


def test_parts_may_be_serialized():
    encoder = keras_drill.ResidualLabelEncoder(depth=2, activation="tanh")
    composition = keras_drill.compositions.Mixture(num_mixtures=2)
    parts = {
        "label_encoder": encoder,
        "score": keras_drill.scores.InnerProduct(),
        "composition": composition,
    }
    serialized = {n: keras.saving.serialize_keras_object(part) for n, part in parts.items()}
    configs = [
        keras_drill.OutputLayer(V, name="head", **p).get_config() for p in (parts, serialized)
    ]
    assert configs[0] == configs[1]
