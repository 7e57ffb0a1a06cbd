"""Samplers and searches over any probabilities and prompts."""

import keras
import numpy as np
import pytest
from hypothesis import strategies as st

from keras_drill import decoding
from tests.fuzz.fuzzed import fuzzed

V = 5
SAMPLERS = [
    decoding.GreedySampler(),
    decoding.TemperatureSampler(0.7),
    decoding.TemperatureSampler(1e-30),
    decoding.TemperatureSampler(1e30),
    decoding.TopKSampler(2),
    decoding.TopKSampler(V, temperature=1e-3),
    decoding.TopPSampler(1e-30),
    decoding.TopPSampler(0.6),
    decoding.TopPSampler(1.0),
    decoding.MinPSampler(1.0),
    decoding.MinPSampler(1e-9, temperature=30.0),
]
NUMBERS = st.sampled_from([0.0, -1.0, -1e-30, -30.0, -1e4, -1e38, -np.inf])
ROWS = st.lists(NUMBERS, min_size=V, max_size=V).filter(lambda row: max(row) > -np.inf)


@fuzzed(
    60,
    sampler=st.sampled_from(SAMPLERS),
    rows=st.tuples(ROWS, ROWS),
    uniforms=st.tuples(*[st.sampled_from([0.0, 1e-30, 0.3, 0.5, 1 - 2**-24])] * 2),
)
def test_samplers_never_choose_what_is_forbidden(folder, sampler, rows, uniforms):
    log_probs = keras.ops.convert_to_tensor(rows, "float32")
    words = np.asarray(sampler.choose(log_probs, keras.ops.convert_to_tensor(uniforms, "float32")))
    for word, row in zip(words, rows, strict=True):
        assert 0 <= word < V and row[word] > -np.inf, (words, rows)


class Bigrams(decoding.DecodingStep):
    """Knows which word follows which."""

    def __init__(self, table):
        super().__init__(vocabulary_size=len(table))
        self.table = keras.ops.convert_to_tensor(table, "float32")

    def begin(self, inputs, batch_size, length):
        return (), ()

    def read(self, tokens, constants, state):
        return keras.ops.take(self.table, tokens, axis=0), state

    def log_probs(self, hidden):
        return hidden


def all_sequences(table, last, room, end):
    """What may be written after a word, with its log-probability."""
    if not room:
        return {(): 0.0}
    found = {}
    for word, log_prob in enumerate(table[last]):
        if log_prob == -np.inf:
            continue
        rest = {(): 0.0} if word == end else all_sequences(table, word, room - 1, end)
        found |= {(word, *words): log_prob + more for words, more in rest.items()}
    return found or {(): 0.0}  # a row that has no way to go on ends


@fuzzed(
    15,
    num_beams=st.sampled_from([1, 2, 30]),
    prompts=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3), min_size=1, max_size=3),
    room=st.integers(0, 3),
    end=st.sampled_from([None, 0, 2]),
    forbidden=st.sampled_from([(), (1,), (0, 1, 2)]),
    no_way=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=4),
    seed=st.integers(0, 99),
)
def test_beam_search_finds_the_best(folder, num_beams, prompts, room, end, forbidden, no_way, seed):
    table = np.log(np.random.default_rng(seed).dirichlet(np.ones(3), 3))
    for place in no_way:
        table[place] = -np.inf
    lengths = [len(prompt) for prompt in prompts]
    tokens = np.zeros((len(prompts), max(lengths) + room), "int32")
    for row, prompt in zip(tokens, prompts, strict=True):
        row[: len(prompt)] = prompt
    search, step = decoding.BeamSearch(num_beams), Bigrams(table)
    if len(forbidden) == 3:
        with pytest.raises(ValueError, match="forbidden_tokens"):
            search(step, tokens, lengths, forbidden_tokens=forbidden)
        return
    found = search(
        step,
        tokens,
        lengths,
        end_token=end,
        forbidden_tokens=forbidden,
        constraints=[lambda log_probs, rows: log_probs],  # with any, rows without a way on end
    )
    tokens, ends, scores = (np.asarray(x) for x in (found.tokens, found.lengths, found.scores))
    allowed = table.copy()
    allowed[:, list(forbidden)] = -np.inf
    for beams, stops, values, prompt in zip(tokens, ends, scores, prompts, strict=True):
        written = [tuple(row[len(prompt) : stop]) for row, stop in zip(beams, stops, strict=True)]
        assert all(list(row[: len(prompt)]) == prompt for row in beams)
        exist = [words for words, value in zip(written, values, strict=True) if value > -np.inf]
        assert not {word for words in exist for word in words} & set(forbidden)
        assert (np.diff(values[values > -np.inf]) <= 0).all()
        whole = all_sequences(allowed, prompt[-1], beams.shape[1] - len(prompt), end)
        if num_beams == 30:
            np.testing.assert_allclose(values[0], max(whole.values()), rtol=1e-5, atol=1e-5)
            assert whole[written[0]] > -np.inf
