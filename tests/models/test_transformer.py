"""Transformers: against NumPy in float64, causality, padding, caches, sharing and saving."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.layers import PositionalEncoding, TransformerLayer
from keras_drill.models import Transformer, TransformerLanguageBackbone

V, D, N, F, B, S, T = 31, 6, 3, 11, 3, 7, 5
SIZES = {"embedding_dim": D, "num_layers": 2, "num_heads": N, "feed_forward_dim": F}


def batch(seed=0):
    """Source and target with 0, 1 and 2 words of padding."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(1, V, (B, S)), rng.integers(1, V, (B, T))
    for row in range(B):
        source[row, S - row :] = 0
        target[row, T - row :] = 0
    return {"source": source.astype("int32"), "target": target.astype("int32")}


def make(**options):
    backbone = Transformer(V, **{**SIZES, "seed": 1, **options})
    backbone.build({"source": (None, None), "target": (None, None)})
    rng = np.random.default_rng(2)
    for weight in backbone.trainable_variables:  # biases and scales too
        weight.assign(weight + 0.1 * rng.normal(size=weight.shape))
    return backbone


def naive_attention(attention, query, source, allowed):
    """Multi-head attention of one sequence, `[T, d]` and `[S, d]`, with loops over heads."""
    weights = [np.asarray(w, "float64") for w in attention.get_weights()]
    wq, bq, wk, bk, wv, bv, wo, bo = weights
    output = np.zeros_like(query) + bo
    for n in range(wq.shape[1]):
        q, k, v = query @ wq[:, n] + bq[n], source @ wk[:, n] + bk[n], source @ wv[:, n] + bv[n]
        scores = np.where(allowed, q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        output += weights / weights.sum(-1, keepdims=True) @ v @ wo[n]
    return output


def naive_norm(norm, x):
    gamma, beta = (np.asarray(w, "float64") for w in norm.get_weights())
    deviation = np.sqrt(x.var(-1, keepdims=True) + norm.epsilon)
    return (x - x.mean(-1, keepdims=True)) / deviation * gamma + beta


def naive_layer(layer, x, source, mask, source_mask):
    causal = np.tril(np.ones((len(x), len(x)), bool))
    w1, b1, w2, b2 = (
        np.asarray(w, "float64") for w in layer.inner.get_weights() + layer.outer.get_weights()
    )
    sublayers = [
        (
            layer.self_attention_norm,
            lambda x: naive_attention(layer.self_attention, x, x, causal & mask),
        ),
        (
            layer.source_attention_norm,
            lambda x: naive_attention(layer.source_attention, x, source, source_mask),
        ),
        (layer.feed_forward_norm, lambda x: np.maximum(x @ w1 + b1, 0) @ w2 + b2),
    ]
    for norm, sublayer in sublayers:
        x = (
            x + sublayer(naive_norm(norm, x))
            if layer.norm_first
            else naive_norm(norm, x + sublayer(x))
        )
    return x


@pytest.mark.parametrize("norm_first", [False, True])
def test_layer_equals_numpy(norm_first):
    layer = TransformerLayer(N, F, causal=True, attends_source=True, norm_first=norm_first)
    layer.build((None, None, D))
    rng = np.random.default_rng(3)
    for weight in layer.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    x, source = rng.normal(size=(B, T, D)), rng.normal(size=(B, S, D))
    mask, source_mask = (batch()[name] != 0 for name in ("target", "source"))
    found = layer(x.astype("float32"), source.astype("float32"), mask=mask, source_mask=source_mask)
    for row in range(B):
        expected = naive_layer(layer, x[row], source[row], mask[row], source_mask[row])
        np.testing.assert_allclose(found[row], expected, rtol=2e-4, atol=2e-4)


def test_sinusoids():
    found = ops.convert_to_numpy(PositionalEncoding()(np.zeros((1, T, D), "float32"), start=4))[0]
    n = D // 2
    for t in range(T):
        for i in range(n):
            angle = (4 + t) / 10_000 ** (i / (n - 1))
            np.testing.assert_allclose(found[t, i], np.sin(angle), atol=1e-5)
            np.testing.assert_allclose(found[t, n + i], np.cos(angle), atol=1e-5)


VARIANTS = [
    {},
    {"norm_first": True, "positions": "learned", "max_length": 11},
    {"source_vocabulary_size": 37, "num_encoder_layers": 1, "scale_embedding": False},
]


@pytest.mark.parametrize("options", VARIANTS)
def test_one_token_at_a_time_equals_all_at_once(options):
    backbone, inputs = make(**options), batch()
    expected = ops.convert_to_numpy(backbone(inputs))
    decoder = backbone.decoder
    source_mask = backbone.token_mask(inputs["source"])
    sources = decoder.project_source(backbone.encode(inputs["source"]))
    caches = decoder.empty_caches(B, T + 2)
    for t in range(T):
        hidden, caches = decoder.step(
            ops.convert_to_tensor(inputs["target"][:, t]),
            caches,
            ops.full((B,), t, dtype="int32"),
            sources,
            source_mask,
        )
        counted = inputs["target"][:, t] != 0
        np.testing.assert_allclose(
            ops.convert_to_numpy(hidden)[counted], expected[counted, t], atol=1e-5
        )


def test_hidden_states_depend_on_nothing_but_source_and_words_before():
    backbone, inputs = make(), batch()
    expected = ops.convert_to_numpy(backbone(inputs))
    later = {**inputs, "target": inputs["target"].copy()}
    later["target"][:, 3:] = 7
    np.testing.assert_allclose(backbone(later)[:, :3], expected[:, :3], atol=1e-6)
    alone = {name: rows[1:2, :-1] for name, rows in inputs.items()}  # its padding is cut off
    np.testing.assert_allclose(backbone(alone)[0], expected[1, :-1], atol=1e-5)
    wider = {name: np.pad(rows, [(0, 0), (0, 4)]) for name, rows in inputs.items()}
    counted = inputs["target"] != 0
    found = ops.convert_to_numpy(backbone(wider))[:, :T]
    np.testing.assert_allclose(found[counted], expected[counted], atol=1e-5)
    other = {**inputs, "source": inputs["source"].copy()}
    other["source"][:, 0] = 1 + other["source"][:, 0] % (V - 1)
    assert np.abs(ops.convert_to_numpy(backbone(other)) - expected).max() > 1e-2


def embedding_of(kind):
    if kind == "usage of senses":
        return keras_drill.SenseEmbedding(V, D, num_senses=67, weighting="usage")
    return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["words", "usage of senses"])
def test_a_saved_model_shares_its_embeddings_and_ignores_padding(kind, tmp_path):
    backbone, inputs = make(embedding=embedding_of(kind)), batch()
    make_head = (
        keras_drill.KernelizedBayesianSoftmax if "senses" in kind else keras_drill.TiedOutput
    )
    model = keras_drill.LanguageModel(backbone, make_head(V, backbone.embedding))
    model.compile("sgd", metrics=[keras_drill.metrics.Perplexity()])
    targets = np.roll(inputs["target"], -1, axis=1)
    before = model.evaluate(inputs, targets, verbose=0, return_dict=True)
    counted = inputs["target"] != 0
    log_probs = ops.convert_to_numpy(model(inputs))[counted]
    expected = -log_probs[np.arange(len(log_probs)), targets[counted]].mean()
    np.testing.assert_allclose(np.log(before["perplexity"]), expected, rtol=1e-5)
    model.fit(inputs, targets, epochs=2, verbose=0)
    assert model.evaluate(inputs, targets, verbose=0, return_dict=True)["loss"] < before["loss"]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.embedding is loaded.backbone.embedding
    assert loaded.backbone.encoder.embedding is loaded.backbone.embedding
    assert len(loaded.trainable_variables) == len(model.trainable_variables)
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=1e-6)


def test_decoder_only():
    backbone = TransformerLanguageBackbone(V, **SIZES, pad_id=0, seed=1)
    tokens = batch()["target"]
    hidden = backbone(tokens)
    counted = tokens != 0
    longer = ops.convert_to_numpy(backbone(np.pad(tokens, [(0, 0), (0, 3)])))[:, :T]
    np.testing.assert_allclose(longer[counted], ops.convert_to_numpy(hidden)[counted], atol=1e-5)
    again = TransformerLanguageBackbone.from_config(backbone.get_config())
    assert again.get_config() == backbone.get_config()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 4}, "`num_heads` must divide"),
        ({"num_layers": 0}, "`num_layers` must be at least 1"),
        ({"feed_forward_dim": 0}, "`feed_forward_dim` must be a positive"),
        ({"positions": "none"}, "`kind` must be one of"),
        ({"positions": "learned"}, "`max_length` must be an integer if"),
        ({"embedding": keras.layers.Embedding(V, 5)}, "`embedding` must have 31 words"),
        (
            {"source_embedding": keras.layers.Embedding(V, 5), "source_vocabulary_size": 37},
            "`source_embedding` must have 37 words",
        ),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_learned_positions_end():
    backbone = make(positions="learned", max_length=T)
    half = make(positions="learned", max_length=T, dtype="mixed_bfloat16")(
        {"source": np.ones((1, T)), "target": np.ones((1, T))}
    )
    assert keras.backend.standardize_dtype(half.dtype) == "bfloat16"
    with pytest.raises(ValueError, match="at most `max_length`=5 positions"):
        backbone({"source": np.ones((1, T + 1)), "target": np.ones((1, T))})


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX knows all lengths")
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_text_beyond_the_learned_positions_changes_no_other_text(norm_first):
    import tensorflow as tf

    most = 4
    backbone = make(positions="learned", max_length=most, norm_first=norm_first, pad_id=0)
    read = tf.function(backbone, input_signature=[
        {name: tf.TensorSpec([None, None], tf.int32) for name in ("source", "target")}
    ])  # fmt: skip
    rng = np.random.default_rng(3)
    inputs = {name: rng.integers(1, V, (3, 7)).astype("int32") for name in ("source", "target")}
    inputs["source"][:2, most:] = inputs["target"][[0, 2], most:] = 0
    found = ops.convert_to_numpy(read(inputs))
    cut = {name: ids[:, :most] for name, ids in inputs.items()}
    alone = ops.convert_to_numpy(backbone(cut))
    np.testing.assert_allclose(found[:2, :most], alone[:2], rtol=1e-5, atol=1e-6)
    is_nan = np.isnan(found).all(axis=-1)
    assert not is_nan[0].any() and not np.isnan(found[0]).any()
    assert is_nan[1].tolist() == [False] * most + [True] * 3  # its target is too long
    assert is_nan[2].all()  # its source is
