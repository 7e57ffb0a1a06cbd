"""The first and the last value that arguments of decoding may have."""

import numpy as np
import pytest
from keras import ops

from keras_drill.decoding import (
    BannedWords,
    GreedySampler,
    NoRepeatNGrams,
    TemperatureSampler,
    TopKSampler,
    generate,
)
from tests.decoding.test_beam_search import Table

V = 5


def text(result):
    return ops.convert_to_numpy(result.tokens).tolist()


def test_a_prompt_may_fill_the_whole_length():
    result = generate(Table(1, V), [[1, 2, 3], [4]], 3)
    assert text(result)[0] == [1, 2, 3] and ops.convert_to_numpy(result.lengths).tolist() == [3, 3]


def test_lengths_may_be_the_width_and_cut_what_is_behind():
    model, padded = Table(1, V), np.array([[1, 2, 3], [4, 0, 0]])
    assert text(generate(model, padded, 6, lengths=[3, 1])) == text(
        generate(model, [[1, 2, 3], [4]], 6)
    )


def test_all_words_may_be_drawn_from():
    scores = ops.log(ops.array([[0.1, 0.2, 0.3, 0.4]]))
    drawn = {int(TopKSampler(4).choose(scores, ops.array([u]))[0]) for u in (0.2, 0.6, 0.8, 0.95)}
    assert drawn == {0, 1, 2, 3}


@pytest.mark.slow
def test_the_first_and_the_last_word_may_be_forbidden_and_banned():
    for word in (0, V - 1):
        for options in (
            {"forbidden_tokens": [word]},
            {"constraints": [BannedWords([word])]},
        ):
            written = {
                token
                for seed in range(3)
                for row in text(generate(Table(seed, V, scale=0.1), [[2]], 20, **options))
                for token in row
            }
            assert word not in written and len(written) > 1


def test_seeds_have_32_bits():
    def draw(seed):
        return text(generate(Table(1, V), [[2]], 9, sampler=TemperatureSampler(), seed=seed))

    assert draw(2**32 - 1) != draw(0)
    with pytest.raises(ValueError, match=r"from 0 to 2\*\*32 - 1. Received: seed=4294967296"):
        draw(2**32)


def test_samples_of_a_prompt_read_its_own_input():
    model, prompts, sampler = Table(1, V), [[2], [3]], TemperatureSampler()
    several = text(
        generate(model, prompts, 7, sampler=sampler, seed=3, num_samples=3, inputs=[5, 1])
    )
    alone = text(generate(model, prompts, 7, sampler=sampler, seed=3, inputs=np.array([5, 1])))
    assert several[::3] == alone
    same = text(
        generate(model, prompts, 7, sampler=sampler, seed=3, num_samples=3, inputs=np.array([5, 5]))
    )
    assert several[:3] == same[:3] and several[3:] != same[3:]


def test_greedy_draws_nothing_and_an_n_gram_may_have_one_word():
    model = Table(4, V)
    assert text(GreedySampler()(model, [[2, 0, 0]], [1])) == text(generate(model, [[2]], 3))
    (row,) = text(generate(model, [[2]], V, constraints=[NoRepeatNGrams(1)]))
    assert sorted(row) == [0, 1, 2, 3, 4]
