"""Words told one after the other are those of a call."""

import numpy as np
import pytest
from keras import ops

from keras_drill.decoding import BeamSearch, GreedySampler, TemperatureSampler, generate, stream
from tests.decoding.test_beam_search import END, Table
from tests.decoding.test_samplers import by_name

PROMPTS, WIDTH = [[2, 3, 2], [4], [0, 2]], 11


def buffer():
    tokens = np.zeros((3, WIDTH), "int32")
    for row, prompt in enumerate(PROMPTS):
        tokens[row, : len(prompt)] = prompt
    return tokens, [len(prompt) for prompt in PROMPTS]


def run_through(words):
    told = []
    while True:
        try:
            told.append(next(words))
        except StopIteration as end:
            return told, end.value


@pytest.mark.parametrize(
    "search",
    [GreedySampler(), TemperatureSampler(), BeamSearch(1), BeamSearch(4, 0.7), BeamSearch(4, 0, 1)],
    ids=by_name,
)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_told_is_the_result(search, seed):
    model = Table(seed, 5, scale=4.0)
    arguments = {"end_token": END}
    if not isinstance(search, BeamSearch):
        arguments["seed"] = 3
    expected = search(model, *buffer(), **arguments)
    told, result = run_through(stream(search, model, *buffer(), **arguments))
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(a), ops.convert_to_numpy(b), rtol=1e-6)
    tokens = ops.convert_to_numpy(expected.tokens).reshape(3, -1, WIDTH)[:, 0]
    lengths = ops.convert_to_numpy(expected.lengths).reshape(3, -1)[:, 0]
    for row, prompt in enumerate(PROMPTS):
        words = [word for news in told for word in news[row]]
        assert words == tokens[row, len(prompt) : lengths[row]].tolist()
    if search.num_beams == 1:
        assert max(len(news[row]) for news in told for row in range(3)) == 1


def test_beams_tell_words_before_they_end():
    """Sure models agree early; nothing told is taken back, which the test above would notice."""
    told, _ = run_through(stream(BeamSearch(3), Table(0, 5, scale=9.0), *buffer()))
    assert sum(any(news) for news in told) > 2


def test_beams_that_hold_nothing_do_not_keep_words_back():
    """Where one word is allowed, there is one sequence for three beams."""
    words = stream(BeamSearch(3), Table(1, 5), [[2, 0, 0, 0]], [1], forbidden_tokens=[0, 1, 2, 3])
    assert run_through(words)[0] == [[[4]]] * 3


def test_generate_calls_back():
    model, told = Table(2, 5), []
    result = generate(model, PROMPTS, WIDTH, end_token=END, on_tokens=told.append)
    expected = generate(model, PROMPTS, WIDTH, end_token=END)
    np.testing.assert_array_equal(result.tokens, expected.tokens)
    for row, prompt in enumerate(PROMPTS):
        words = [word for news in told for word in news[row]]
        length = int(expected.lengths[row])
        assert words == ops.convert_to_numpy(expected.tokens)[row, len(prompt) : length].tolist()


def test_one_sequence_is_read_as_a_list_of_one():
    tokens, lengths = (x[1:2] for x in buffer())
    model = Table(2, 5)
    words = [word for [news] in stream(GreedySampler(), model, tokens, lengths) for word in news]
    assert (
        words
        == ops.convert_to_numpy(GreedySampler()(model, tokens, lengths).tokens)[0, 1:].tolist()
    )


def test_nothing_to_write():
    told, result = run_through(stream(BeamSearch(2), Table(1), np.zeros((0, 5)), np.zeros(0)))
    assert told == [] and tuple(result.tokens.shape) == (0, 2, 5)
    told, _ = run_through(stream(GreedySampler(), Table(1), [[2, 2]], [2]))
    assert told == []
