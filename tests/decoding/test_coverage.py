"""What searches tell of attention, and what they make of it."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import AddonsBeamSearch, BeamSearch, LanguageModelStep
from keras_drill.layers import AdditiveScore, Attention, MonotonicWindow
from keras_drill.models import RecurrentEncoderDecoder, Transformer
from tests.decoding.test_beam_search import END, PAD, L, Table, V, WithoutEarlyStop, search_for
from tests.decoding.test_constraints import rows_of
from tests.decoding.test_samplers import compiled_versions
from tests.decoding.tiny_models import awd_lstm_with_drill, skip_float16_heads_of_jax

S = 7


def numpy(x):
    return ops.convert_to_numpy(x)


class AttendingTable(Table):
    """Looks at a source, of a length that depends on its kind, as the column and the word say."""

    def __init__(self, seed):
        super().__init__(seed)
        rng = np.random.default_rng(seed)
        self.lengths = np.array([5, 1, 7, 4, 2, 6, 3])  # of each kind
        looks = rng.gamma(0.3, size=(7, 23, V, S)) + 1e-9
        looks *= np.arange(S) < self.lengths[:, None, None, None]
        self.looks = looks / looks.sum(-1, keepdims=True)

    def source_mask(self, constants):
        lengths = ops.take(ops.convert_to_tensor(self.lengths, "int32"), constants["kinds"])
        return ops.arange(S) < lengths[:, None]

    def read_with_attention(self, tokens, constants, state):
        kinds = self.kinds_of_rows(tokens, constants)
        index = (kinds * 23 + state["position"]) * V + tokens
        looks = ops.convert_to_tensor(self.looks.reshape(-1, S), "float32")
        return *self.read(tokens, constants, state), ops.take(looks, index, axis=0)


def coverage(looks):
    """Of attention `[words, source positions that there are]`."""
    return np.log(np.clip(looks.sum(0), 1e-30, 1.0)).sum()


def all_sequences(model, prompt, kind, length_penalty, coverage_penalty):
    found = []
    room = L - len(prompt)
    for written in itertools.product(range(V), repeat=room):
        count = written.index(END) + 1 if END in written else room
        sequence, total, looks = list(prompt), 0.0, []
        for word in written[:count]:
            last = sequence[-2] if len(sequence) > 1 else 0
            position = len(sequence) - 1
            total += model.table[kind, position, last, sequence[-1], word]
            looks.append(model.looks[kind, position, sequence[-1], : model.lengths[kind]])
            sequence.append(word)
        score = total / ((5 + count) / 6) ** length_penalty
        score += coverage_penalty * coverage(np.array(looks))
        found.append((score, sequence, np.array(looks)))
    unique = {tuple(sequence): (score, looks) for score, sequence, looks in found}
    return sorted(unique.items(), key=lambda item: -item[1][0])


@pytest.mark.parametrize(("length_penalty", "coverage_penalty"), [(0.0, 0.2), (0.8, 1.1), (1, 0)])
def test_a_wide_beam_equals_brute_force(length_penalty, coverage_penalty):
    model, prompts, kinds = AttendingTable(3), [[2], [0, 2], [2, 0, 2]], np.array([0, 2, 1])
    search = BeamSearch(
        V**4, length_penalty, 3, coverage_penalty=coverage_penalty, return_attention=True
    )
    tokens, lengths, scores, *_, attention = search_for(search, model, prompts, kinds)
    assert attention.shape == (3, 3, L, S)
    for row, prompt in enumerate(prompts):
        expected = all_sequences(model, prompt, kinds[row], length_penalty, coverage_penalty)
        for k, (sequence, (score, looks)) in enumerate(expected[:3]):
            assert tokens[row, k].tolist() == [*sequence] + [PAD] * (L - len(sequence))
            np.testing.assert_allclose(scores[row, k], score, rtol=1e-5)
            expected_looks = np.zeros((L, S))
            expected_looks[len(prompt) : lengths[row, k], : looks.shape[1]] = looks
            np.testing.assert_allclose(attention[row, k], expected_looks, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_early_stopping_changes_nothing(length_penalty):
    for seed in range(3):
        arguments = {"length_penalty": length_penalty, "coverage_penalty": 0.3, "num_results": 2}
        model, kinds = AttendingTable(seed), np.array([2, 0])
        found = search_for(BeamSearch(4, **arguments), model, [[2], [0]], kinds)
        expected = search_for(WithoutEarlyStop(4, **arguments), model, [[2], [0]], kinds)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_addons_count_what_was_seen_by_beams_that_have_ended():
    looks = np.random.default_rng(5).uniform(size=(2, L, S)) * [1, 0.2, 0, 0.1, 1, 0, 0.4]
    rows = rows_of(np.zeros((2, L)), np.array([1, 1]), 1, width=L)._replace(
        attention=ops.convert_to_tensor(looks, "float32"),
        source_mask=ops.convert_to_tensor([[True] * (S - 2) + [False, True]] * 2),
        finished=ops.convert_to_tensor([True, False]),
    )
    seen = [coverage(x[:, looks[0].any(axis=0)]) for x in looks]
    np.testing.assert_allclose(AddonsBeamSearch().coverage(rows), [seen[0], 0.0], rtol=1e-5)
    unseen = np.log(1e-30)  # of the two positions without attention one counts
    np.testing.assert_allclose(BeamSearch().coverage(rows), np.add(seen, unseen), rtol=1e-5)


@pytest.mark.slow
def test_compiled_it_gives_the_same():
    model, search = AttendingTable(8), BeamSearch(3, 0.6, coverage_penalty=0.4)
    tokens = np.array([[2, 0, 0, 0, 0], [0, 2, 0, 0, 0]], "int32")

    def decode(tokens, lengths):
        kinds = ops.convert_to_tensor([2, 3], "int32")
        return tuple(search(model, tokens, lengths, inputs=kinds, end_token=END))

    expected = decode(tokens, [1, 2])
    for compiled in compiled_versions(decode):
        result = compiled(ops.convert_to_tensor(tokens), ops.convert_to_tensor([1, 2], "int32"))
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(numpy(a), numpy(b), rtol=1e-6)


class Remembering(Attention):
    """Attention that keeps the alignments of the last call."""

    def call(self, query, source, positions=None):
        contexts, self.alignments = super().call(query, source, positions=positions)
        return contexts, self.alignments


class RememberingHeads(keras.layers.MultiHeadAttention):
    """Keras' attention, which is asked for its weights too, and keeps their mean over the heads."""

    def call(self, query, value, attention_mask=None, use_causal_mask=False, training=None):
        outputs, weights = super().call(
            query,
            value,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            return_attention_scores=True,
        )
        self.alignments = ops.mean(weights, axis=1)
        return outputs


def make_recurrent(**options):
    attention = Remembering(AdditiveScore(5), **options.pop("attention", {}))
    return RecurrentEncoderDecoder(11, 6, units=7, attention=attention, seed=3, **options)


BACKBONES = {
    "recurrent": make_recurrent,
    "recurrent, window": lambda: make_recurrent(attention={"window": MonotonicWindow(1)}),
    "recurrent, input feeding": lambda: make_recurrent(input_feeding=True, cell="gru"),
    "recurrent, bfloat16": lambda: make_recurrent(dtype="mixed_bfloat16"),
    "Transformer": lambda: Transformer(
        11, 6, num_layers=2, num_heads=2, feed_forward_dim=7, dropout=0.0, seed=3
    ),
    "Transformer, float16": lambda: Transformer(
        11, 6, num_layers=2, num_heads=2, feed_forward_dim=7, dropout=0.0, dtype="mixed_float16"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BACKBONES)
def test_the_attention_of_models_is_that_of_whole_sequences(kind, monkeypatch):
    skip_float16_heads_of_jax(kind == "Transformer, float16")
    monkeypatch.setattr(keras.layers, "MultiHeadAttention", RememberingHeads)
    backbone = BACKBONES[kind]()
    head = keras_drill.TiedOutput(11, backbone.embedding)
    model = keras_drill.LanguageModel(backbone, head)
    model.build({"source": (None, None), "target": (None, None)})
    rng = np.random.default_rng(4)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.5 * rng.normal(size=weight.shape))
    source = np.array([[3, 4, 2, 0, 0], [4, 9, 1, 3, 2]], "int32")
    tokens = np.ones((2, 6), "int32")
    search = BeamSearch(3, 0.5, coverage_penalty=0.3)
    beams = search(
        LanguageModelStep(model),
        tokens,
        [1, 2],
        inputs={"source": source},
        end_token=2,
        forbidden_tokens=[0],
    )
    layer = getattr(backbone, "attention", None)
    layer = layer or backbone.decoder.transformer_layers[-1].source_attention
    tolerance = {"atol": 1e-5 if backbone.compute_dtype == "float32" else 2e-2}
    for k in range(3):
        written = numpy(beams.tokens)[:, k]
        backbone({"source": source, "target": written[:, :-1]})
        expected = np.pad(numpy(layer.alignments).astype("float32"), ((0, 0), (1, 0), (0, 0)))
        for row, first in enumerate([1, 2]):  # columns of the prompts
            end = int(beams.lengths[row, k])
            found = numpy(beams.attention)[row, k]
            np.testing.assert_allclose(found[first:end], expected[row, first:end], **tolerance)
            assert not found[:first].any() and not found[end:].any()
            count = end - first
            score = float(beams.log_probs[row, k]) / ((5 + count) / 6) ** 0.5
            score += 0.3 * coverage(found[:, : (source[row] > 0).sum()])
            np.testing.assert_allclose(beams.scores[row, k], score, rtol=1e-4)


def test_without_attention_it_is_refused():
    deaf = RecurrentEncoderDecoder(5, 6, units=7, seed=3)
    deaf = keras_drill.LanguageModel(deaf, keras_drill.TiedOutput(5, deaf.embedding))
    deaf.build({"source": (None, None), "target": (None, None)})
    source = np.ones((1, 2), "int32")
    for model, inputs in ((awd_lstm_with_drill(), None), (deaf, {"source": source})):
        step = LanguageModelStep(model)
        for search in (BeamSearch(2, coverage_penalty=0.1), BeamSearch(2, return_attention=True)):
            with pytest.raises(ValueError, match=r"`coverage_penalty` and `return_a.* Received:"):
                search(step, [[1, 0]], [1], inputs=inputs)
    with pytest.raises(ValueError, match="`coverage_penalty` must be finite"):
        BeamSearch(2, coverage_penalty=-0.1)


def test_config():
    search = BeamSearch(2, coverage_penalty=0.2, return_attention=True)
    assert BeamSearch.from_config(search.get_config()).get_config() == search.get_config()
