import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis import float64_head, measure_rank

V, D, N = 503, 11, 89


def _built(head, hidden_dim=D, seed=3):
    generator = np.random.default_rng(seed)
    head(np.zeros((1, hidden_dim), "float32"))
    for variable in head.trainable_variables:
        variable.assign(generator.normal(size=variable.shape))
    return head


def _hidden(width=D, rows=N):
    return 2 * np.random.default_rng(5).normal(size=(rows, width)).astype("float32")


def _embedding(rows=V, width=D):
    return keras.layers.Embedding(rows, width)


BOUNDED = {
    "softmax": lambda: (keras_drill.OutputLayer(V), D + 2),
    "no bias": lambda: (keras_drill.OutputLayer(V, use_bias=False), D + 1),
    "tied": lambda: (keras_drill.OutputLayer(V, embedding=_embedding()), D + 2),
    "DRILL": lambda: (
        keras_drill.OutputLayer(
            V, embedding=_embedding(), label_encoder=keras_drill.ResidualLabelEncoder(2)
        ),
        D + 2,
    ),
    "bilinear, narrow": lambda: (
        keras_drill.OutputLayer(
            V, embedding=_embedding(width=7), label_encoder=keras_drill.BilinearLabelEncoder()
        ),
        7 + 2,
    ),
    "mixed precision": lambda: (keras_drill.OutputLayer(V, dtype="mixed_bfloat16"), D + 2),
}
UNBOUNDED = {
    "mixture": lambda: keras_drill.MixtureOfSoftmaxes(V, num_mixtures=3),
    "KerBS": lambda: keras_drill.KernelizedBayesianSoftmax(V, num_senses=2 * V),
    "tied KerBS": lambda: keras_drill.KernelizedBayesianSoftmax(
        V, keras_drill.SenseEmbedding(V, D, num_senses=2 * V)
    ),
    "senses without kernel": lambda: keras_drill.KernelizedBayesianSoftmax(
        V, variant="inner_product"
    ),
    "soft cap": lambda: keras_drill.OutputLayer(V, logit_soft_cap=3.0),
}


@pytest.mark.parametrize("kind", BOUNDED)
def test_softmax_reaches_its_bound_and_stays_there(kind):
    head, bound = BOUNDED[kind]()
    estimate = measure_rank(_built(head), _hidden())
    assert (estimate.rank, estimate.bound) == (bound, bound)
    assert (estimate.tokens, estimate.words, estimate.is_full) == (N, V, False)


@pytest.mark.parametrize("kind", UNBOUNDED)
def test_mixtures_and_senses_exceed_it(kind):
    estimate = measure_rank(_built(UNBOUNDED[kind]()), _hidden())
    assert estimate.bound is None
    assert estimate.rank > 2 * (D + 2)


def test_more_tokens_than_words():
    head = _built(keras_drill.OutputLayer(53))
    assert measure_rank(head, _hidden(rows=331)).rank == D + 2
    mixture = _built(keras_drill.MixtureOfSoftmaxes(53, num_mixtures=3))
    estimate = measure_rank(mixture, _hidden(rows=331))
    assert estimate.rank == 53 and estimate.is_full


@pytest.mark.parametrize("kind", [*BOUNDED, *UNBOUNDED])
def test_the_float64_copy_gives_the_same_and_leaves_the_original_alone(kind):
    made = (BOUNDED | UNBOUNDED)[kind]()
    head = _built(made[0] if isinstance(made, tuple) else made)
    before = [keras.ops.convert_to_numpy(variable) for variable in head.variables]
    log_probs = keras.ops.convert_to_numpy(float64_head(head)(_hidden().astype("float64")))
    assert log_probs.dtype == "float64"
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-12)
    if kind != "mixed precision":
        expected = keras.ops.convert_to_numpy(head(_hidden()))
        np.testing.assert_allclose(log_probs, expected, rtol=1e-4, atol=1e-4)
    for value, variable in zip(before, head.variables, strict=True):
        np.testing.assert_array_equal(value, keras.ops.convert_to_numpy(variable))


def test_hidden_states_must_be_a_matrix():
    with pytest.raises(ValueError, match=r"`hidden` must be a matrix .*\. Received: "):
        measure_rank(_built(keras_drill.OutputLayer(V)), np.zeros((2, 3, D)))


def test_an_embedding_that_was_tied_late_is_copied_too():
    embedding = _embedding()
    head = keras_drill.OutputLayer(
        V,
        embedding=embedding,
        label_encoder=keras_drill.ResidualLabelEncoder(2),
    )
    tied = keras_drill.OutputLayer.from_config(head.get_config())
    _built(tied)
    embedding.build()
    tied.tie_to(embedding)
    expected = keras.ops.convert_to_numpy(tied(_hidden()))
    log_probs = keras.ops.convert_to_numpy(float64_head(tied)(_hidden().astype("float64")))
    np.testing.assert_allclose(log_probs, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode, rank", [("int8", None), ("int4", None), ("int8", 2), (None, 2)])
@pytest.mark.parametrize("depth", [0, 2])
def test_the_copy_of_a_quantised_embedding_has_the_table_that_it_stands_for(mode, rank, depth):
    embedding = keras.layers.Embedding(V, 12)  # int4 packs pairs and wants no odd width
    embedding.build(None)
    embedding.embeddings.assign(np.random.default_rng(3).normal(size=(V, 12)))
    if rank is not None:
        embedding.enable_lora(rank)
        embedding.lora_embeddings_b.assign(np.random.default_rng(4).normal(size=(rank, 12)))
    if mode is not None:
        embedding.quantize(mode)
    encoder = keras_drill.ResidualLabelEncoder(depth) if depth else None
    head = keras_drill.OutputLayer(V, embedding, encoder)
    head.build((None, 12))
    hidden = np.random.default_rng(5).normal(size=(29, 12))
    expected = keras.ops.convert_to_numpy(head(hidden.astype("float32")))
    log_probs = keras.ops.convert_to_numpy(float64_head(head)(hidden))
    assert log_probs.dtype == "float64"
    np.testing.assert_allclose(log_probs, expected, rtol=1e-4, atol=1e-4)
    assert measure_rank(head, hidden).rank == min(29, 12 + 1)  # biases are 0
