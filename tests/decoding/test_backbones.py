"""Any causal backbone decodes: by its state, by a cache, or by reading the prefix again."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import LanguageModelStep, TopKSampler, generate
from keras_drill.layers.carried_state import carried_state
from keras_drill.models import AWDLSTM, Transformer, TransformerLanguageBackbone
from tests.decoding.test_samplers import compiled_versions

V, D = 19, 6
PROMPTS = [[2, 3, 5], [13]]
LENGTH = 7


def numpy(x):
    return ops.convert_to_numpy(x)


def readme_lstm():
    embedding = keras.layers.Embedding(V, D)
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.LSTM(D, return_sequences=True)(embedding(tokens))
    return keras.Model(tokens, hidden), embedding


def stateful_sequential():
    embedding = keras.layers.Embedding(V, D)
    layers = [embedding, keras.layers.GRU(D, return_sequences=True, stateful=True)]
    backbone = keras.Sequential(layers)
    backbone.build((2, None))
    return backbone, embedding


def masking_lstm():
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    backbone = keras.Sequential([embedding, keras.layers.LSTM(D, return_sequences=True)])
    return backbone, embedding


def inner_backbone():
    """A recurrent backbone that carries its state, inside a model that hides it."""
    inner = AWDLSTM(V, D, 7, 2, stateful=True, batch_size=2)
    tokens = keras.Input((None,), batch_size=2, dtype="int32")
    return keras.Model(tokens, keras.layers.Dense(D)(inner(tokens))), inner.embedding


class Positions(keras.layers.Layer):
    """Adds sines, so that there are positions but no greatest length."""

    def call(self, x):
        t = ops.cast(ops.arange(ops.shape(x)[1]), x.dtype)[:, None]
        return x + ops.sin(t * ops.arange(1, 1 + D, dtype=x.dtype))


def transformer(length=None):
    embedding = keras.layers.Embedding(V, D)
    tokens = keras.Input((length,), dtype="int32")
    x = Positions()(embedding(tokens))
    x = x + keras.layers.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
    return keras.Model(tokens, keras.layers.LayerNormalization()(x)), embedding


def transformer_of_fixed_length():
    return transformer(11)


BACKBONES = [
    readme_lstm,
    stateful_sequential,
    masking_lstm,
    inner_backbone,
    transformer,
    transformer_of_fixed_length,
]


def model_with(backbone, embedding):
    model = keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(V, embedding=embedding))
    if not model.built:
        model.head.build((None, None, D))
    random = np.random.default_rng(23)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.9, size=variable.shape))
    return model


@pytest.fixture(scope="module", params=BACKBONES, ids=lambda make: make.__name__)
def model(request):
    keras.utils.set_random_seed(1)
    model = model_with(*request.param())
    model.fixed_length = 11 if request.param is transformer_of_fixed_length else None
    return model


def scores_of(model, tokens):
    """Log-probabilities after every word of two whole texts, whatever the model carries."""
    for variable in carried_state(model.backbone):
        variable.assign(np.zeros(variable.shape))
    length = tokens.shape[1]
    tokens = np.pad(tokens, ((0, 0), (0, (model.fixed_length or length) - length)))
    return numpy(model.head(model.backbone(tokens)))[:, :length]


def test_greedy_is_the_argmax_of_a_recomputation(model):
    assert LanguageModelStep(model).decodes_by == "prefix"
    for variable in carried_state(model.backbone):
        variable.assign(np.ones(variable.shape))
    result = generate(model, PROMPTS, LENGTH)
    for variable in carried_state(model.backbone):
        assert (numpy(variable) == 1).all()
    tokens = numpy(result.tokens)
    scores = scores_of(model, tokens)
    for row, prompt in enumerate(PROMPTS):
        assert tokens[row, : len(prompt)].tolist() == prompt
        for t in range(len(prompt), LENGTH):
            assert tokens[row, t] == scores[row, t - 1].argmax()


@pytest.mark.slow
@pytest.mark.parametrize("make", [readme_lstm, stateful_sequential, transformer])
def test_compiled_and_alone(make):
    step, sampler = LanguageModelStep(model_with(*make())), TopKSampler(5)
    tokens = np.array([[2, 3, 5, 0, 0, 0], [13, 0, 0, 0, 0, 0]], "int32")
    seeds = np.array([3, 5], "int32")

    def decode(tokens, lengths):
        return tuple(sampler(step, tokens, lengths, seed=seeds, end_token=4))

    alone = generate(step, [[13]], 6, sampler=sampler, seed=seeds[1:], end_token=4)
    for compiled in compiled_versions(decode)[-2:]:
        result = compiled(ops.convert_to_tensor(tokens), ops.convert_to_tensor([3, 1]))
        for a, b in zip(result, alone, strict=True):
            np.testing.assert_allclose(numpy(a)[1], numpy(b)[0], atol=1e-5)


def test_the_way_of_decoding_is_said():
    backbone = AWDLSTM(V, D, 7, 1)
    step = LanguageModelStep(model_with(backbone, backbone.embedding))
    assert step.decodes_by == "state"
    with pytest.raises(ValueError, match=r"`inputs` must be None .* Received: inputs=3"):
        generate(step, PROMPTS, LENGTH, inputs=3)


def test_a_backbone_that_sees_later_words_is_refused():
    embedding = keras.layers.Embedding(V, D)
    layer = keras.layers.Bidirectional(keras.layers.LSTM(D // 2, return_sequences=True))
    model = model_with(keras.Sequential([embedding, layer]), embedding)
    with pytest.raises(ValueError, match=r"must have a causal backbone .* Received:"):
        generate(model, PROMPTS, LENGTH)


def test_a_fixed_length_bounds_the_result():
    with pytest.raises(
        ValueError, match=r"`max_length` must be at most 11.* Received: max_length=12"
    ):
        generate(model_with(*transformer_of_fixed_length()), PROMPTS, 12)


def check_against_one_pass(model, result, prompts, inputs=None):
    """The log-probabilities of a generation are those of one call on all of its words."""
    tokens, log_probs = numpy(result.tokens), numpy(result.log_probs)
    scores = numpy(model(tokens if inputs is None else {**inputs, "target": tokens}))
    for row, prompt in enumerate(prompts):
        assert tokens[row, : len(prompt)].tolist() == prompt
        for t in range(len(prompt), LENGTH):
            expected = scores[row, t - 1, tokens[row, t]]
            assert log_probs[row, t] == pytest.approx(expected, abs=1e-5)


def test_a_transformer_with_a_cache():
    backbone = TransformerLanguageBackbone(
        V, D, num_layers=2, num_heads=2, feed_forward_dim=7, dropout=0.0
    )
    backbone.build((None, None))
    model = model_with(backbone, backbone.embedding)
    assert LanguageModelStep(model).decodes_by == "cache"
    result = generate(model, PROMPTS, LENGTH, sampler=TopKSampler(3), seed=1, num_samples=2)
    check_against_one_pass(model, result, [PROMPTS[0]] * 2 + [PROMPTS[1]] * 2)
    with pytest.raises(ValueError, match="`inputs` must be None"):
        generate(model, PROMPTS, LENGTH, inputs=3)


@pytest.mark.slow
def test_a_transformer_with_a_source():
    backbone = Transformer(V, D, num_layers=1, num_heads=2, feed_forward_dim=7, dropout=0.0)
    source = np.array([[3, 5, 7, 11], [4, 6, 0, 0]], "int32")
    backbone({"source": source, "target": np.ones((2, 1), "int32")})
    model = model_with(backbone, backbone.embedding)
    assert LanguageModelStep(model).decodes_by == "cache"
    arguments = {"sampler": TopKSampler(3), "seed": 1, "forbidden_tokens": [0]}
    result = generate(model, PROMPTS, LENGTH, inputs={"source": source}, **arguments)
    check_against_one_pass(model, result, PROMPTS, {"source": source})
    several = generate(
        model, PROMPTS, LENGTH, inputs={"source": source}, num_samples=2, **arguments
    )
    np.testing.assert_array_equal(several.tokens[::2], result.tokens)
    prompts = [PROMPTS[0]] * 2 + [PROMPTS[1]] * 2
    check_against_one_pass(model, several, prompts, {"source": np.repeat(source, 2, axis=0)})
