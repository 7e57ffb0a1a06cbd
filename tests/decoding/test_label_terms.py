"""What a kernel needs of the labels is computed once for a search, not at each word."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import BeamSearch, GreedySampler, LanguageModelStep, generate
from keras_drill.models import AWDLSTM
from keras_drill.scores import InnerProduct, KerBSKernel

V, M, D, B = 11, 29, 7, 3


def model_with(variant, dtype="float32", tied=True, encoder=None):
    keras.utils.set_random_seed(5)
    embedding, options = None, {"num_senses": M, "variant": variant}
    if tied:
        score = InnerProduct() if variant == "inner_product" else KerBSKernel(variant)
        weighting = "posterior" if encoder is None else "usage"
        options = {"num_senses": M, "score": score, "weighting": weighting, "dtype": dtype}
        embedding, options = keras_drill.SenseEmbedding(V, D, **options), {}
    backbone = AWDLSTM(V, D, 13, 2, embedding=embedding, dtype=dtype)
    head = keras_drill.KernelizedBayesianSoftmax(
        V, embedding, label_encoder=encoder, use_bias=True, dtype=dtype, **options
    )
    model = keras_drill.LanguageModel(backbone, head)
    model(np.zeros((1, 1), "int32"))
    for variable in head.score_parameters:
        variable.assign(np.random.default_rng(3).uniform(-3, 3, M))
    return model


def step_and_hidden(model):
    hidden = ops.convert_to_tensor(np.random.default_rng(1).standard_normal((B, D)))
    return LanguageModelStep(model), ops.cast(hidden, model.head.compute_dtype)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16", "float64"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("variant", ["paper", "reference", "inner_product"])
def test_log_probabilities_are_those_of_the_head(variant, tied, dtype):
    model = model_with(variant, dtype, tied)
    step, hidden = step_and_hidden(model)
    expected = ops.convert_to_numpy(model.head(hidden))
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(step.scorer()(hidden), expected, atol=tolerance)
    np.testing.assert_allclose(step.log_probs(hidden), expected, atol=tolerance)
    logits = step.logit_scorer()(hidden)
    np.testing.assert_allclose(ops.log_softmax(logits), expected, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16", "float64"])
@pytest.mark.parametrize(
    "options",
    [
        {"use_bias": True},
        {"use_bias": True, "logit_soft_cap": 2.0},
        {"label_encoder": keras_drill.ResidualLabelEncoder(depth=2, activation="tanh")},
    ],
)
def test_logits_are_those_of_the_head(options, dtype):
    keras.utils.set_random_seed(5)
    if "label_encoder" in options:
        config = {**options["label_encoder"].get_config(), "dtype": dtype}
        options = {"label_encoder": keras_drill.ResidualLabelEncoder.from_config(config)}
    backbone = AWDLSTM(V, D, 13, 2, dtype=dtype)
    head = keras_drill.OutputLayer(V, backbone.embedding, dtype=dtype, **options)
    model = keras_drill.LanguageModel(backbone, head)
    model(np.zeros((1, 1), "int32"))
    if head.use_bias:
        head.bias.assign(np.random.default_rng(3).normal(size=V))
    step, hidden = step_and_hidden(model)
    logits = step.logit_scorer()(hidden)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(ops.log_softmax(logits), model.head(hidden), atol=tolerance)
    assert logits.dtype == model.head(hidden).dtype


class Fused(LanguageModelStep):
    """Words of one more model count, as in shallow fusion."""

    def log_probs(self, hidden):
        return super().log_probs(hidden) + ops.where(ops.arange(V) == 3, 0.0, -20.0)


class FusedOnce(LanguageModelStep):
    def scorer(self):
        score = super().scorer()
        return lambda hidden: score(hidden) + ops.where(ops.arange(V) == 3, 0.0, -20.0)


@pytest.mark.slow
@pytest.mark.parametrize("step", [Fused, FusedOnce])
@pytest.mark.parametrize("variant", ["paper", "inner_product"])
@pytest.mark.parametrize("sampler", [BeamSearch(3), GreedySampler()])
def test_what_a_subclass_of_the_step_says_is_heard(sampler, variant, step):
    result = generate(step(model_with(variant)), [[2, 5], [7]], 7, sampler=sampler)
    tokens = ops.convert_to_numpy(result.tokens).reshape(2, -1, 7)[:, 0]
    assert (tokens[0, 2:] == 3).all() and (tokens[1, 1:] == 3).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "dtype"),
    [
        (BeamSearch(3), "mixed_float16"),
        (GreedySampler(), "float64"),
        pytest.param(BeamSearch(3), "float64", marks=pytest.mark.slow),
        pytest.param(GreedySampler(), "mixed_bfloat16", marks=pytest.mark.slow),
    ],
)
def test_searches_in_other_precisions(sampler, dtype):
    plain = model_with("paper")
    model = model_with("paper", dtype)
    model.set_weights(plain.get_weights())  # others are drawn in float64
    options = {"sampler": sampler, "forbidden_tokens": [0]}
    found, expected = (
        ops.convert_to_numpy(generate(x, [[2, 3, 5], [7]], 9, **options).log_probs)
        for x in (model, plain)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float64" else 0.03)


def test_a_mixture_has_no_logits():
    backbone = AWDLSTM(V, D, 13, 2)
    model = keras_drill.LanguageModel(
        backbone, keras_drill.MixtureOfSoftmaxes(V, backbone.embedding, 3)
    )
    model(np.zeros((1, 1), "int32"))
    assert LanguageModelStep(model).logit_scorer() is None


def test_they_are_those_of_folded_labels():
    encoder = keras_drill.ResidualLabelEncoder(depth=2, activation="tanh")
    model = model_with("paper", encoder=encoder)
    step, hidden = step_and_hidden(model)
    expected = ops.convert_to_numpy(model.head(hidden))
    np.testing.assert_allclose(step.scorer()(hidden), expected, atol=1e-5)


def test_each_search_has_those_of_its_moment():
    model = model_with("paper")
    step, hidden = step_and_hidden(model)
    before = step.scorer()(hidden)
    table = model.head.embeddings
    table.assign(2 * table)
    after = step.scorer()(hidden)
    np.testing.assert_allclose(after, ops.convert_to_numpy(model.head(hidden)), atol=1e-5)
    assert abs(ops.convert_to_numpy(after) - ops.convert_to_numpy(before)).max() > 1e-3


@pytest.mark.slow
def test_generation_is_that_of_recomputed_probabilities():
    model = model_with("paper")
    result = generate(model, [[2, 3, 5], [7]], 9)
    tokens, lengths = map(ops.convert_to_numpy, (result.tokens, result.lengths))
    for row, length, prompt in zip(tokens, lengths, (3, 1), strict=True):
        best = ops.convert_to_numpy(model(row[None, : length - 1]))[0].argmax(-1)
        np.testing.assert_array_equal(row[prompt:length], best[prompt - 1 :])


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="looks at TensorFlow's graph")
def test_the_labels_are_read_only_for_the_product():
    import tensorflow as tf

    model = model_with("paper")
    step, hidden = step_and_hidden(model)

    def readers(function):
        graph = tf.function(function).get_concrete_function(hidden).graph
        return {
            op.type
            for op in graph.get_operations()
            if any(tuple(x.shape) == (M, D) for x in op.inputs)
        } - {"Identity", "Cast", "Transpose"}

    score = step.scorer()
    assert readers(model.head) > readers(score)
    assert readers(score) <= {"MatMul", "Einsum"}
