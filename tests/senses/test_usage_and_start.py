"""By which probability senses count as used, and how they begin."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.senses import SenseReallocator
from keras_drill.senses.policies import ThresholdPolicy
from tests.gradients import value_and_gradients

V, M, D, N = 7, 17, 11, 23
RANDOM = np.random.default_rng(13)
HIDDEN = RANDOM.normal(size=(N, D)).astype("float32")
TARGETS = RANDOM.integers(0, V, N)
WEIGHTS = (np.arange(N) % 5 > 0).astype("float32")


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("usage_by", ["posterior", "probability"])
def test_usage_is_summed_and_averaged_as_equation_13_says(usage_by, is_tied):
    keras.utils.set_random_seed(3)
    embedding = None
    if is_tied:
        score = keras_drill.scores.InnerProduct()
        embedding = keras_drill.SenseEmbedding(V, D, M, score=score, usage_by=usage_by)
    head = keras_drill.KernelizedBayesianSoftmax(
        V,
        embedding,
        None if is_tied else M,
        variant="inner_product",
        usage_by=None if is_tied else usage_by,
        use_bias=True,
        bias_initializer="random_normal",
    )
    head.loss(HIDDEN, TARGETS, sample_weight=WEIGHTS)
    labels, bias = (ops.convert_to_numpy(x).astype("float64") for x in (head.embeddings, head.bias))
    senses = softmax(HIDDEN.astype("float64") @ labels.T + bias)  # [N, M]
    of_target = senses * (np.arange(M) % V == TARGETS[:, None])
    if usage_by == "posterior":
        of_target /= of_target.sum(1, keepdims=True)
    expected = of_target[WEIGHTS > 0].sum(0)
    found = ops.convert_to_numpy(head.allocation.usage_sum)
    np.testing.assert_allclose(found, expected, rtol=1e-4)

    SenseReallocator(head, interval=1, policy=ThresholdPolicy(-1e30), momentum=0.3).step(1)
    averaged = 0.7 / M + 0.3 * expected / WEIGHTS.sum()
    np.testing.assert_allclose(head.allocation.usage, averaged, rtol=1e-4)
    copy = type(head).from_config(head.get_config())
    assert copy.usage_by == copy.allocation.usage_by == usage_by


@pytest.mark.parametrize("num_senses", [M, 3 * V])
@pytest.mark.parametrize("is_tied", [False, True])
def test_copies_begin_with_the_probabilities_of_the_softmax(is_tied, num_senses):
    words = keras.initializers.RandomUniform(-1, 1, seed=5)
    options = {"num_senses": num_senses, "senses_start": "copies", "embeddings_initializer": words}
    embedding = keras_drill.SenseEmbedding(V, D, **options) if is_tied else None
    head = keras_drill.KernelizedBayesianSoftmax(
        V,
        embedding,
        use_bias=True,
        **({} if is_tied else options),
    )
    plain = keras_drill.OutputLayer(V, embeddings_initializer=words)
    expected = plain(HIDDEN)
    np.testing.assert_allclose(head(HIDDEN), expected, atol=2e-5)
    labels = ops.convert_to_numpy(head.embeddings)
    moved = labels - ops.convert_to_numpy(plain.embeddings)[np.arange(num_senses) % V]
    size = np.sqrt(np.mean(labels**2))
    assert 1e-4 * size < moved.std() < 4e-4 * size
    assert len(np.unique(labels, axis=0)) == num_senses
    if is_tied:
        found = ops.convert_to_numpy(embedding(np.arange(V)))
        np.testing.assert_allclose(found, plain.embeddings, atol=2e-3 * size)
    copy = type(head).from_config(head.get_config())
    assert copy.senses_start == "copies"


def test_a_start_that_there_is_none_of():
    for make in (keras_drill.KernelizedBayesianSoftmax, lambda V, **k: embedding(V, **k)):
        with pytest.raises(ValueError, match=r"`senses_start` must be .* Received: .*'near'"):
            make(V, senses_start="near")
    with pytest.raises(
        ValueError, match=r"`usage_by` must be one of .* Received: usage_by='share'"
    ):
        keras_drill.KernelizedBayesianSoftmax(V, usage_by="share")
    with pytest.raises(ValueError, match=r"`usage_by` must be None or 'posterior'"):
        keras_drill.KernelizedBayesianSoftmax(V, embedding(V), usage_by="probability")


def test_gradients_of_weighted_senses_are_those_of_the_sum():
    layer = embedding(V, num_senses=M, min_senses=2)
    layer.build(None)
    layer.embeddings.assign(RANDOM.normal(size=(M, D)))
    layer.score_parameters[0].assign(RANDOM.normal(size=M))
    context, upstream = HIDDEN[:5], RANDOM.normal(size=(5, D)).astype("float32")
    senses, mask, usage, theta = layer.look_up(TARGETS[:5])

    def loss(context, senses, theta):
        return ops.sum(upstream * layer.weigh(senses, mask, usage, theta, context=context))

    _, _, *expected = value_and_gradients(loss, [], context, senses, theta)
    *found, (d_theta,) = layer.weigh_gradient(upstream, senses, mask, (theta,), context)
    for one, other in zip((*found, d_theta), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        assert np.abs(other).max() > 0.01


def test_a_label_encoder_goes_only_with_weights_by_usage():
    encoder = keras_drill.ResidualLabelEncoder(depth=2)
    by_usage = embedding(V, weighting="usage")
    head = keras_drill.KernelizedBayesianSoftmax(V, by_usage, label_encoder=encoder)
    assert head.label_encoder is encoder and head.allocation is by_usage.allocation
    with pytest.raises(ValueError, match=r'`label_encoder` must be None if .*weighting="usage"'):
        keras_drill.KernelizedBayesianSoftmax(V, embedding(V), label_encoder=encoder)


def embedding(vocabulary_size, **options):
    return keras_drill.SenseEmbedding(vocabulary_size, D, **options)
