"""The protocol that decoding and export need, and what a training step of AWD-LSTM does."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.models import AWDLSTM, GRULanguageBackbone
from tests.gradients import value_and_gradients

V, D, H, B, T = 31, 5, 7, 3, 11
LAYERS = 2


def with_senses(backbone_class, weighting="posterior"):
    """A constructor of backbones whose words have senses."""

    def construct(*args, **kwargs):
        embedding = keras_drill.SenseEmbedding(V, D, num_senses=67, weighting=weighting)
        return backbone_class(*args, embedding=embedding, **kwargs)

    return construct


SENSE_AWDLSTM, SENSE_GRU = with_senses(AWDLSTM), with_senses(GRULanguageBackbone)
STATES = {
    AWDLSTM: 2 * LAYERS,
    GRULanguageBackbone: LAYERS,
    SENSE_AWDLSTM: 2 * LAYERS,
    SENSE_GRU: LAYERS,
}
BACKBONES = list(STATES)
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def tokens(length=T, seed=0):
    return np.random.RandomState(seed).randint(0, V, (B, length)).astype("int32")


def make(backbone_class, **kwargs):
    backbone = backbone_class(V, D, H, LAYERS, **{"seed": 1, **kwargs})
    backbone.build((B, None))
    return backbone


def copy_weights(source, target):
    for a, b in zip(source.trainable_variables, target.trainable_variables, strict=True):
        b.assign(a)


@pytest.mark.parametrize("backbone_class", BACKBONES)
def test_protocol(backbone_class):
    backbone = make(backbone_class)
    assert isinstance(backbone.embedding, keras.layers.Embedding)
    assert backbone.state_variables == []
    state = backbone.initial_state(B)
    assert len(state) == STATES[backbone_class]
    assert {tuple(s.shape) for s in state} == {(B, H), (B, D)}
    hidden, new_state = backbone(tokens(), initial_state=state, return_state=True)
    assert tuple(hidden.shape) == (B, T, D)
    assert [tuple(s.shape) for s in new_state] == [tuple(s.shape) for s in state]
    np.testing.assert_array_equal(hidden, backbone(tokens()))


@pytest.mark.slow
@pytest.mark.parametrize("backbone_class", BACKBONES)
def test_carried_and_passed_states_equal_one_long_text(backbone_class):
    carried = make(backbone_class, stateful=True)
    whole = make(backbone_class)
    copy_weights(carried, whole)
    expected = ops.convert_to_numpy(whole(tokens()))
    pieces = [tokens()[:, :4], tokens()[:, 4:5], tokens()[:, 5:]]
    assert len(carried.state_variables) == STATES[backbone_class]
    for _ in range(2):
        found = np.concatenate([carried(p) for p in pieces], axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        carried.reset_state()
    carried(tokens())
    before = [ops.convert_to_numpy(v) for v in carried.state_variables]
    state, found = carried.initial_state(B), []
    for piece in pieces:
        hidden, state = carried(piece, initial_state=state, return_state=True)
        found.append(hidden)
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, atol=1e-6)
    for variable, value, last in zip(carried.state_variables, before, state, strict=True):
        np.testing.assert_array_equal(variable, value)
        np.testing.assert_allclose(last, value, atol=1e-6)


@pytest.mark.parametrize("backbone_class", BACKBONES)
def test_state_after_masked_prompts_is_that_of_the_last_word(backbone_class):
    backbone = make(backbone_class)
    lengths = [T, 5, 2]
    mask = np.arange(T)[None] < np.array(lengths)[:, None]
    _, state = backbone(tokens(), mask=mask, return_state=True)
    for row, length in enumerate(lengths):
        _, alone = backbone(tokens()[row : row + 1, :length], return_state=True)
        for a, b in zip(state, alone, strict=True):
            np.testing.assert_allclose(a[row : row + 1], b, atol=1e-6)


@pytest.mark.parametrize("backbone_class", [AWDLSTM, GRULanguageBackbone])
def test_with_one_sense_a_word_nothing_changes(backbone_class):
    plain = make(backbone_class)
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=V, max_senses=1)
    senses = make(backbone_class, embedding=embedding)
    embedding.embeddings.assign(plain.embedding.embeddings)
    for a, b in zip(plain.recurrent_layers, senses.recurrent_layers, strict=True):
        copy_weights(a, b)
    np.testing.assert_allclose(senses(tokens()), plain(tokens()), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("backbone_class", [SENSE_AWDLSTM, SENSE_GRU])
def test_words_are_embedded_by_the_posterior_of_their_senses(backbone_class):
    backbone = make(backbone_class)
    embedding = backbone.embedding
    theta = embedding.score_parameters[0]
    theta.assign(np.resize([-3, -1.2, -0.5, 0.6, 1, 2, 3], 67))  # near 0 the formula cancels
    embedding.embeddings.assign(4 * np.random.RandomState(2).normal(size=(67, D)))
    rate = np.array([1.0, 2.0, 3.0], "float32")[:, None, None]

    def scores(context, senses, theta):
        """Eq. 9 as it is printed, of `[B, d]`, `[B, S, d]` and `[B, S]`."""
        norms = ops.sqrt(ops.sum(context**2, -1)[:, None] * ops.sum(senses**2, -1) + 1e-30)
        cos = ops.einsum("bd,bsd->bs", context, senses) / norms
        a = -theta / (2 * (ops.exp(-theta) + theta - 1))
        return norms * (a * ops.exp(-theta * cos) - a)

    def literal():
        """The loop and the posterior written out."""
        state, hidden = backbone.initial_state(B), [ops.zeros((B, D))]
        for t in range(T):
            columns, mask = embedding.allocation.columns(tokens()[:, t])
            senses = ops.take(embedding.embeddings, columns, axis=0)
            logits = scores(hidden[-1], senses, ops.take(theta, columns, axis=0))
            posterior = ops.softmax(ops.where(mask, logits, -1e9))
            x = ops.sum(posterior[..., None] * senses, axis=-2)[None]  # [1, B, d]
            new = []
            for layer in backbone.recurrent_layers:
                start = state[len(new) : len(new) + layer.num_states]
                x, *after = layer(x, initial_state=start)
                new += after
            state = new
            hidden.append(x[0])
        return ops.stack(hidden[1:], axis=1)

    np.testing.assert_allclose(backbone(tokens()), literal(), atol=2e-6)
    head = keras_drill.KernelizedBayesianSoftmax(V, embedding)
    head.build((None, None, D))
    context = np.random.RandomState(3).normal(size=(B, D)).astype("float32")
    columns, mask = embedding.allocation.columns(tokens()[:, 0])
    senses = ops.take(embedding.embeddings, columns, axis=0)
    logits = scores(context, senses, ops.take(theta, columns, axis=0))
    np.testing.assert_allclose(
        head.sense_posteriors(context, tokens()[:, 0]),
        ops.softmax(ops.where(mask, logits, -1e9)),
        atol=1e-6,
    )

    variables = [embedding.embeddings, theta, *backbone.recurrent_layers[0].trainable_variables]
    _, *actual = value_and_gradients(
        lambda rate: ops.sum(ops.square(backbone(tokens())) * rate), variables, rate
    )
    _, *expected = value_and_gradients(
        lambda rate: ops.sum(ops.square(literal()) * rate), variables, rate
    )
    for a, b in zip([*actual[0], actual[1]], [*expected[0], expected[1]], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_activation_regularisation():
    backbone = make(AWDLSTM, dropout=0.0, hidden_dropout=0.0, input_dropout=0.0,
                    embedding_dropout=0.0, weight_dropout=0.0)  # fmt: skip
    hidden = ops.convert_to_numpy(backbone(tokens(), training=True))
    ar, tar = (float(loss) for loss in backbone.losses)
    assert ar == pytest.approx(2 * np.mean(hidden**2), rel=1e-5)
    assert tar == pytest.approx(np.mean((hidden[:, 1:] - hidden[:, :-1]) ** 2), rel=1e-5)
    backbone(tokens())
    assert backbone.losses == []
    backbone(tokens(length=1), training=True)
    assert float(backbone.losses[1]) == 0


def test_dropouts_follow_the_seed():
    first, second, third = (make(AWDLSTM, seed=seed) for seed in (1, 1, 2))
    copy_weights(first, third)
    runs = [[ops.convert_to_numpy(m(tokens(), training=True)) for _ in range(2)]
            for m in (first, second, third)]  # fmt: skip
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0][0] != runs[0][1]).any()
    assert (runs[0][0] != runs[2][0]).any()


@pytest.mark.slow
@pytest.mark.parametrize("backbone_class", BACKBONES)
def test_saving_and_cloning(backbone_class, tmp_path):
    backbone = make(backbone_class, stateful=True, batch_size=B)
    backbone(tokens())
    backbone.save(tmp_path / "backbone.keras")
    loaded = keras.models.load_model(tmp_path / "backbone.keras")
    assert loaded.get_config() == backbone.get_config()
    for _ in range(2):  # the carried state is saved as well
        np.testing.assert_array_equal(loaded(tokens(seed=1)), backbone(tokens(seed=1)))
    clone = keras.models.clone_model(backbone)
    assert [v.shape for v in clone.weights] == [v.shape for v in backbone.weights]


# Uncompiled, JAX would compile the time loops anew at every step.
POLICIES = [("float32", True), ("mixed_float16", True)]
if ON_TENSORFLOW:
    POLICIES += [("float32", False), ("mixed_bfloat16", False)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "backbone_class, policy, jit_compile",
    [
        *((BACKBONES[0], *policy) for policy in (POLICIES[0], *POLICIES[2:])),
        *((other, *POLICIES[-1]) for other in BACKBONES[1:]),
        pytest.param(BACKBONES[0], *POLICIES[1], marks=pytest.mark.slow),
        *(
            pytest.param(other, *policy, marks=pytest.mark.slow)
            for other in BACKBONES[1:]
            for policy in POLICIES[:-1]
        ),
    ],
)
def test_training_with_a_tied_head(backbone_class, policy, jit_compile):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        backbone = make(backbone_class, stateful=True, batch_size=B)
        head = keras_drill.OutputLayer(V, embedding=backbone.embedding)
        model = keras_drill.LanguageModel(backbone, head)
        optimizer = keras.optimizers.SGD(1.0, global_clipnorm=1.0)
        model.compile(optimizer, jit_compile=jit_compile)
        x = tokens()
        losses = [model.train_on_batch(x, x) for _ in range(11)]
        assert losses[-1] < losses[0] - 0.02
        assert any(np.any(ops.convert_to_numpy(v)) for v in backbone.state_variables)
    finally:
        keras.config.set_dtype_policy(before)


@pytest.mark.slow
@pytest.mark.skipif(not ON_TENSORFLOW, reason="a TensorFlow signature")
@pytest.mark.parametrize("backbone_class", BACKBONES)
def test_one_trace_serves_all_lengths(backbone_class):
    import tensorflow as tf

    backbone = make(backbone_class, stateful=True, batch_size=B)
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([B, None], tf.int32)])
    def step(x):
        traces.append(x)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(backbone(x, training=True) ** 2) + sum(backbone.losses)
        return tape.gradient(loss, [v.value for v in backbone.trainable_variables])

    for length in (7, 1, 13):
        gradients = step(tokens(length))
        assert all(np.isfinite(tf.convert_to_tensor(g)).all() for g in gradients)
    assert len(traces) == 1


def test_bad_arguments():
    with pytest.raises(
        ValueError, match=r"`num_layers` must be at least 1. Received: num_layers=0"
    ):
        AWDLSTM(V, D, H, 0)
    embedding = keras_drill.SenseEmbedding(V, D + 2)
    with pytest.raises(ValueError, match=r"`embedding` must have 31 words and width 5. Received"):
        AWDLSTM(V, D, H, LAYERS, embedding=embedding)
    with pytest.raises(ValueError, match=r"`output_dim` must be None or "):
        with_senses(AWDLSTM)(V, D, H, LAYERS, output_dim=D + 2)
    with pytest.raises(ValueError, match=r"needs `batch_size` .* Received: batch_size=None"):
        AWDLSTM(V, D, H, LAYERS, stateful=True).build((None, None))


def test_activations_are_regularised_before_and_after_dropout():
    """AR evaluates what is dropped, TAR what is not, as in Merity et al."""
    tokens = np.random.default_rng(0).integers(0, V, (3, 5))

    def make(ar, tar):
        return AWDLSTM(
            V, 5, 7, 2, dropout=0.5, hidden_dropout=0.0, input_dropout=0.0, embedding_dropout=0.0,
            weight_dropout=0.0, activation_regularization=ar,
            temporal_activation_regularization=tar, seed=3,
        )  # fmt: skip

    backbone = make(0.0, 2.0)
    raw = ops.convert_to_numpy(backbone(tokens))  # no other dropout: what training drops from
    backbone(tokens, training=True)
    (loss,) = backbone.losses
    assert float(loss) == pytest.approx(2 * np.mean((raw[:, 1:] - raw[:, :-1]) ** 2), rel=1e-5)
    backbone = make(3.0, 0.0)
    dropped = ops.convert_to_numpy(backbone(tokens, training=True))
    assert (dropped == 0).any()
    (loss,) = backbone.losses
    assert float(loss) == pytest.approx(3 * np.mean(dropped**2), rel=1e-5)
