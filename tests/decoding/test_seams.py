"""Searches with every kind of model, head, precision and compiler, at least in pairs."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import (
    AddonsBeamSearch,
    BeamSearch,
    GreedySampler,
    LanguageModelStep,
    MinLength,
    MinPSampler,
    NoRepeatNGrams,
    RepetitionPenalty,
    TopKSampler,
    TopPSampler,
)
from keras_drill.layers import AdditiveScore, Attention
from keras_drill.models import GRULanguageBackbone, RecurrentEncoderDecoder, Transformer
from tests.decoding.tiny_models import skip_float16_heads_of_jax

pytestmark = pytest.mark.slow

V, D, L, START, END = 19, 6, 7, 1, 2
SOURCE = np.array([[3, 4, 2, 0, 0], [4, 9, 1, 3, 2], [5, 0, 0, 0, 0]], "int32")
TOKENS = np.array([[1, 0, 0, 0, 0, 0, 0], [1, 5, 7, 0, 0, 0, 0], [1, 8, 0, 0, 0, 0, 0]], "int32")
LENGTHS = np.array([1, 3, 2], "int32")

HEADS = {
    "softmax": lambda embedding: keras_drill.SoftmaxOutput(V),
    "drill": lambda embedding: keras_drill.DrillOutput(V, embedding, depth=2),
    "mixture": lambda embedding: keras_drill.MixtureOfSoftmaxes(V, embedding, 3),
    "kerbs": lambda embedding: keras_drill.KernelizedBayesianSoftmax(V, embedding),
}
BACKBONES = {
    "transformer": lambda embedding: Transformer(
        V,
        D,
        num_layers=2,
        num_heads=2,
        feed_forward_dim=7,
        dropout=0.1,
        seed=1,
        embedding=embedding,
        source_vocabulary_size=11,
    ),
    "recurrent": lambda embedding: RecurrentEncoderDecoder(
        V,
        D,
        units=7,
        attention=Attention(AdditiveScore(5)),
        input_feeding=True,
        dropout=0.1,
        seed=1,
        embedding=embedding,
        source_vocabulary_size=11,
    ),
    "stateful": lambda embedding: GRULanguageBackbone(
        V, D, units=7, num_layers=2, stateful=True, batch_size=3, embedding=embedding
    ),
}
BEAMS = BeamSearch(3, 0.6, num_results=2)
COVERING = BeamSearch(3, 0.6, num_results=2, coverage_penalty=0.3)
AS_ADDONS = AddonsBeamSearch(3, 0.6, num_results=2)
HALF = {"mixed_bfloat16": 0.3, "mixed_float16": 0.05}
PAIRS = [
    ("softmax", "transformer", COVERING, "float32", "saved"),
    ("drill", "transformer", MinPSampler(0.1), "float32", "eager"),
    ("mixture", "transformer", BEAMS, "mixed_float16", "graph"),
    ("kerbs", "transformer", TopKSampler(5), "mixed_bfloat16", "xla"),
    ("softmax", "recurrent", TopPSampler(0.9), "mixed_float16", "saved"),
    ("drill", "recurrent", COVERING, "mixed_bfloat16", "graph"),
    ("mixture", "recurrent", GreedySampler(), "float32", "xla"),
    ("kerbs", "recurrent", COVERING, "float32", "xla"),
    ("softmax", "stateful", MinPSampler(0.2), "mixed_bfloat16", "graph"),
    ("drill", "stateful", BEAMS, "float32", "xla"),
    ("mixture", "stateful", TopKSampler(4), "float32", "saved"),
    ("kerbs", "stateful", BEAMS, "mixed_float16", "saved"),
    ("drill", "transformer", AS_ADDONS, "float32", "xla"),
    ("softmax", "recurrent", AS_ADDONS, "float32", "saved"),
]


def make_model(head, backbone, policy="float32"):
    keras.utils.set_random_seed(3)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        embedding = keras.layers.Embedding(V, D)
        if head == "kerbs":
            embedding = keras_drill.SenseEmbedding(V, D, num_senses=43, weighting="usage")
        model = keras_drill.LanguageModel(BACKBONES[backbone](embedding), HEADS[head](embedding))
        shape = (3, None) if backbone == "stateful" else {"source": (3, None), "target": (3, None)}
        model.build(shape)
    finally:
        keras.config.set_dtype_policy(before)
    rng = np.random.default_rng(4)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.4 * rng.normal(size=weight.shape))
    return model


def make_decode(model, search, backbone, **arguments):
    step = LanguageModelStep(model)
    if not isinstance(search, BeamSearch):
        arguments["seed"] = 5

    def decode(tokens, lengths, source):
        return search(
            step,
            tokens,
            lengths,
            inputs=None if backbone == "stateful" else {"source": source},
            end_token=END,
            forbidden_tokens=[0],
            constraints=[NoRepeatNGrams(2), MinLength(2), RepetitionPenalty(1.1)],
            **arguments,
        )._asdict()

    return decode


def compile_as(mode, decode, step_variables, folder):
    if keras.backend.backend() == "jax":
        import jax

        return decode if mode == "eager" else jax.jit(decode)
    import tensorflow as tf

    signature = [tf.TensorSpec([None] * rank, tf.int32) for rank in (2, 1, 2)]
    if mode == "xla":
        return tf.function(decode, jit_compile=True)
    if mode == "eager":
        return decode
    graph = tf.function(decode, input_signature=signature)
    if mode == "graph":
        return graph
    module = tf.Module()
    module.kept = [getattr(variable, "value", variable) for variable in step_variables]
    tf.saved_model.save(module, str(folder), signatures=graph)
    served = tf.saved_model.load(str(folder)).signatures["serving_default"]
    names = list(served.structured_input_signature[1])
    assert sorted(names) == ["lengths", "source", "tokens"]
    return lambda tokens, lengths, source: served(tokens=tokens, lengths=lengths, source=source)


def numpy(x):
    return ops.convert_to_numpy(x)


@pytest.mark.parametrize(
    ("head", "backbone", "search", "policy", "mode"),
    PAIRS,
    ids=[f"{h}-{b}-{type(s).__name__}-{p}-{m}" for h, b, s, p, m in PAIRS],
)
def test_what_is_written_has_the_log_probabilities_of_one_pass(
    head, backbone, search, policy, mode, tmp_path
):
    skip_float16_heads_of_jax(backbone == "transformer" and policy == "mixed_float16")
    model = make_model(head, backbone, policy)
    decode = make_decode(model, search, backbone)
    run = compile_as(mode, decode, model.variables, tmp_path)
    result = run(*(ops.convert_to_tensor(x) for x in (TOKENS, LENGTHS, SOURCE)))
    result = {name: numpy(value) for name, value in result.items()}
    log_probs = result["word_log_probs" if isinstance(search, BeamSearch) else "log_probs"]
    tokens = result["tokens"].reshape(3, -1, L)
    lengths, log_probs = result["lengths"].reshape(3, -1), log_probs.reshape(3, -1, L)
    for k in range(tokens.shape[1]):
        if backbone == "stateful":
            model.backbone.reset_state()
            expected = numpy(model(tokens[:, k, :-1]))
        else:
            expected = numpy(model({"source": SOURCE, "target": tokens[:, k, :-1]}))
        for row, first in enumerate(LENGTHS):
            length = lengths[row, k]
            written = tokens[row, k, first:length].tolist()
            assert 0 not in written and END not in written[:2]
            assert tokens[row, k, :first].tolist() == TOKENS[row, :first].tolist()
            places = np.arange(first, length)
            found = log_probs[row, k, places]
            wanted = expected[row, places - 1, tokens[row, k, places]].astype("float32")
            np.testing.assert_allclose(found, wanted, atol=HALF.get(policy, 2e-4))
    if policy == "float32":
        again = decode(*(x[:1] for x in (TOKENS, LENGTHS)), SOURCE[:1, :3])  # alone, unpadded
        for name, value in again.items():
            if name != "attention":
                np.testing.assert_allclose(numpy(value)[0], result[name][0], atol=2e-4)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("search", [COVERING, TopKSampler(3)], ids=["beams", "sampler"])
def test_empty_batches(backbone, search):
    search = BEAMS if search is COVERING and backbone == "stateful" else search
    decode = make_decode(make_model("drill", backbone), search, backbone)
    for mode in ("eager", "graph"):
        run = compile_as(mode, decode, [], None)
        empty = [ops.convert_to_tensor(x[:0]) for x in (TOKENS, LENGTHS, SOURCE)]
        result = run(*empty)
        assert result["tokens"].shape[0] == 0 and result["tokens"].shape[-1] == L


def test_more_beams_than_words():
    """Of few words the beams are all the sequences that there are."""
    model = make_model("softmax", "transformer")
    decode = make_decode(model, BeamSearch(2 * V + 3), "transformer", max_lengths=LENGTHS + 1)
    result = decode(TOKENS, LENGTHS, SOURCE)
    found = numpy(result["tokens"])[np.arange(3), :, LENGTHS]
    is_there = numpy(result["scores"]) > -np.inf
    for row in range(3):
        words = set(found[row][is_there[row]].tolist())
        assert len(words) == is_there[row].sum() >= V - 4  # but for padding, end, repetition
        assert not words & {0, END}
