"""Dynamic evaluation: each update is recomputed from the matrix of all log-probabilities."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.layers.carried_state import carried_state
from keras_drill.models import AWDLSTM, DynamicEvaluator, GRULanguageBackbone, gradient_mean_squares
from tests.gradients import value_and_gradients

V, D, B, T = 31, 5, 2, 3
RANDOM = np.random.default_rng(11)
ROWS = RANDOM.integers(0, 7, (B, 5 * T + 1))  # words that are read more than once
BATCHES = [(ROWS[:, i : i + T], ROWS[:, i + 1 : i + T + 1]) for i in range(0, 4 * T, T)]
DROPOUT = {"dropout": 0.3, "weight_dropout": 0.5, "activation_regularization": 2.0}


def language_model(head="tied", layer=AWDLSTM, rows=B, **options):
    keras.utils.set_random_seed(7)
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=67) if head == "senses" else None
    backbone = layer(
        V, D, 7, 2, stateful=True, batch_size=rows, seed=3, embedding=embedding, **options
    )
    heads = {
        "tied": lambda: keras_drill.TiedOutput(V, backbone.embedding),
        "softmax": lambda: keras_drill.SoftmaxOutput(V),
        "drill": lambda: keras_drill.DrillOutput(V, backbone.embedding, 2, dropout=0.5),
        "mixture": lambda: keras_drill.MixtureOfSoftmaxes(V, backbone.embedding, num_mixtures=3),
        "kerbs": lambda: keras_drill.KernelizedBayesianSoftmax(V, num_senses=67),
        "senses": lambda: keras_drill.KernelizedBayesianSoftmax(
            V, num_senses=67, embedding=backbone.embedding
        ),
    }
    model = keras_drill.LanguageModel(backbone, heads[head]())
    random = np.random.default_rng(5)
    for variable in model.trainable_variables:
        variable.assign(random.normal(size=variable.shape, scale=0.4))
    for variable in carried_state(model):
        variable.assign(random.normal(size=variable.shape, scale=0.2))
    return model


def values(model):
    return [ops.convert_to_numpy(variable) for variable in model.variables]


def read(model, batches, update):
    """Log-probabilities, where `update(gradients)` changes the weights after each batch."""
    state, found = model.backbone.initial_state(B), []
    for tokens, targets in batches:
        chosen = ops.one_hot(targets, V)

        def log_probs(tokens=tokens, chosen=chosen, state=tuple(state)):
            hidden = model.backbone(tokens, initial_state=list(state))
            return ops.sum(model.head(hidden) * chosen, axis=-1)

        found.append(ops.convert_to_numpy(log_probs()).reshape(-1))
        _, gradients = value_and_gradients(
            lambda log_probs=log_probs: -ops.mean(log_probs()), model.trainable_variables
        )
        _, state = model.backbone(tokens, initial_state=list(state), return_state=True)
        update(gradients)
    return np.concatenate(found)


def assign(model, new):
    for variable, value in zip(model.trainable_variables, new, strict=True):
        variable.assign(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    ["softmax", "senses", "tied", "drill", "mixture", "kerbs"],
)
def test_sgd_with_a_global_prior(head):
    model = language_model(head, **DROPOUT)
    before = values(model)
    rate, decay = 0.3, 0.05
    found = DynamicEvaluator(model).evaluate(BATCHES, rate, decay)
    for one, other in zip(before, values(model), strict=True):
        np.testing.assert_array_equal(one, other)

    trained = [ops.convert_to_numpy(v).astype("float64") for v in model.trainable_variables]
    now = list(trained)

    def update(gradients):
        for i, gradient in enumerate(gradients):
            now[i] = now[i] - rate * gradient + decay * (trained[i] - now[i])
        assign(model, now)

    expected = read(model, BATCHES, update)
    np.testing.assert_allclose(found.log_probs, expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_array_equal(
        found.targets, np.concatenate([y.reshape(-1) for _, y in BATCHES])
    )
    assert found.hidden is None


@pytest.mark.slow
def test_rms_with_decay():
    model = language_model(layer=GRULanguageBackbone, dropout=0.3)
    before, squares = values(model), []
    found_squares = gradient_mean_squares(model, BATCHES)
    read(model, BATCHES, lambda gradients: squares.append([g**2 for g in gradients]))
    means = [np.mean(each, axis=0) for each in zip(*squares, strict=True)]
    for one, other in zip(found_squares, means, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-8)

    rate, decay, epsilon = 0.004, 0.3, 0.01
    evaluator = DynamicEvaluator(model, found_squares, epsilon)
    found = evaluator.evaluate(BATCHES, rate, decay).log_probs
    for one, other in zip(before, values(model), strict=True):
        np.testing.assert_array_equal(one, other)

    roots = [np.sqrt(each) for each in means]
    norm = np.concatenate([root.reshape(-1) for root in roots]).mean()
    shares = [np.minimum(root / norm, 1 / decay) for root in roots]
    assert max(root.max() for root in roots) / norm > 1 / decay  # the limit matters
    trained = [ops.convert_to_numpy(v).astype("float64") for v in model.trainable_variables]
    now = list(trained)

    def update(gradients):
        for i, (gradient, root) in enumerate(zip(gradients, roots, strict=True)):
            pull = decay * shares[i] * (trained[i] - now[i])
            now[i] = now[i] - rate * gradient / (root + epsilon) + pull
        assign(model, now)

    np.testing.assert_allclose(found, read(model, BATCHES, update), rtol=2e-4, atol=2e-5)


@pytest.mark.slow
def test_without_learning_the_state_is_carried_over_segments_of_any_length():
    model = language_model()
    stateless = keras_drill.models.make_stateless(model)
    tokens, targets = ROWS[:, :-1], ROWS[:, 1:]
    expected = np.take_along_axis(np.asarray(stateless(tokens)), targets[..., None], -1)[..., 0]
    for length in (1, T, tokens.shape[1]):
        starts = range(0, tokens.shape[1], length)
        batches = [(tokens[:, i : i + length], targets[:, i : i + length]) for i in starts]
        found = DynamicEvaluator(model).evaluate(batches, 0.0, keep_hidden=True)
        in_rows = [expected[:, i : i + length].reshape(-1) for i in starts]
        np.testing.assert_allclose(found.log_probs, np.concatenate(in_rows), atol=1e-5)
        assert found.hidden.shape == (tokens.size, D)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_in_mixed_precision_it_learns_as_in_float32(policy):
    def evaluate():
        model = language_model("softmax")
        before = values(model)
        found = DynamicEvaluator(model).evaluate(BATCHES, learning_rate=0.5, decay=0.02)
        for old, new in zip(before, values(model), strict=True):
            np.testing.assert_array_equal(old, new)
        return found.log_probs

    expected, keras_policy = evaluate(), keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        found = evaluate()
    finally:
        keras.config.set_dtype_policy(keras_policy)
    assert np.abs(found - expected).max() < 0.05 < np.abs(expected - np.roll(expected, 1)).max()


@pytest.mark.slow
def test_tokens_of_weight_0_are_read_and_teach_nothing():
    model = language_model()
    weights = np.ones((B, T))
    weights[1] = 0
    plain = DynamicEvaluator(model).evaluate(BATCHES, 0.3)
    evaluator = DynamicEvaluator(model)
    found = evaluator.evaluate([(*batch, weights) for batch in BATCHES], 0.3)
    assert len(found.log_probs) == len(plain.log_probs) / 2
    np.testing.assert_array_equal(found.targets, np.concatenate([y[0] for _, y in BATCHES]))
    first = plain.log_probs[: B * T].reshape(B, T)[0]
    np.testing.assert_allclose(found.log_probs[:T], first, rtol=1e-5)
    tokens, targets = BATCHES[0]
    others = (tokens, np.where(weights > 0, targets, V - 1), weights)
    again = evaluator.evaluate([others, *BATCHES[1:]], 0.3).log_probs
    mine = evaluator.evaluate([(tokens, targets, weights), *BATCHES[1:]], 0.3).log_probs
    np.testing.assert_array_equal(again, mine)


def test_a_text_that_repeats_itself_is_learned_by_the_copy_of_one_row():
    model = language_model(rows=3)
    one = keras_drill.models.with_batch_size(model, 1)
    tokens = np.tile(RANDOM.integers(0, V, 11), 5)
    batches = [(tokens[None, i : i + 5], tokens[None, i + 1 : i + 6]) for i in range(0, 50, 5)]
    evaluator = DynamicEvaluator(one)
    still, learned = (evaluator.evaluate(batches, rate).log_probs for rate in (0.0, 2.0))
    np.testing.assert_array_equal(still[:5], learned[:5])
    assert learned[-11:].mean() > still[-11:].mean() + 0.5


def test_what_is_refused():
    transformer = keras_drill.models.TransformerLanguageBackbone(
        V, 6, 1, num_heads=2, feed_forward_dim=7
    )
    models = {
        "transformer": keras_drill.LanguageModel(transformer, keras_drill.SoftmaxOutput(V)),
        "stateless": keras_drill.models.make_stateless(language_model()),
    }
    for model in models.values():
        with pytest.raises(ValueError, match=r"carry its state .*Transformer.* Received: "):
            DynamicEvaluator(model)
        with pytest.raises(ValueError, match=r"carry its state .* Received: "):
            gradient_mean_squares(model, BATCHES)
    model = language_model()
    with pytest.raises(ValueError, match=r"`mean_squares` .* Received: 1 arrays for"):
        DynamicEvaluator(model, [np.ones((V, D))])
    with pytest.raises(ValueError, match=r"`epsilon` .* Received: epsilon=0"):
        DynamicEvaluator(model, epsilon=0)
    evaluator = DynamicEvaluator(model)
    for rate, decay in ((-1.0, 0.0), (float("nan"), 0.0), (0.1, 1.5)):
        with pytest.raises(ValueError, match=r"`learning_rate` .* Received: learning_rate="):
            evaluator.evaluate(BATCHES, rate, decay)
    for read_no_text in (
        lambda: evaluator.evaluate([], 0.1),
        lambda: gradient_mean_squares(model, []),
    ):
        with pytest.raises(ValueError, match=r"`batches` must .* Received: \[\]"):
            read_no_text()
    model.trainable = False
    with pytest.raises(
        ValueError, match=r"`model` must have trainable weights. Received: .*frozen"
    ):
        DynamicEvaluator(model)
