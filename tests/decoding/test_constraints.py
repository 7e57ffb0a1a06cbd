"""Constraints against loops over lists, and under every search."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.decoding import (
    BannedWords,
    BeamSearch,
    GreedySampler,
    MinLength,
    MinPSampler,
    NoRepeatNGrams,
    RepetitionPenalty,
    Rows,
    TemperatureSampler,
    TopKSampler,
    TopPSampler,
    generate,
)
from tests.decoding.test_beam_search import END, PAD, Table
from tests.decoding.test_samplers import by_name, compiled_versions

V, L = 5, 6
CONSTRAINTS = {
    "min length": [MinLength(3)],
    "penalty": [RepetitionPenalty(1.7)],
    "bonus": [RepetitionPenalty(0.3)],
    "words": [NoRepeatNGrams(1)],
    "bigrams": [NoRepeatNGrams(2)],
    "trigrams": [NoRepeatNGrams(3)],
    "banned word": [BannedWords([3])],
    "banned": [BannedWords([[2], [4, 3], [2, 4, 3], [0, 0]])],
    "banned end": [BannedWords([[3, END], [4, 4]])],
    "all": [RepetitionPenalty(1.3), NoRepeatNGrams(2), BannedWords([[3, 4]]), MinLength(2)],
}
every_constraint = pytest.mark.parametrize("constraints", CONSTRAINTS.values(), ids=CONSTRAINTS)
SAMPLERS = [
    GreedySampler(),
    TemperatureSampler(1.3),
    TopKSampler(3),
    TopPSampler(0.7),
    MinPSampler(0.2),
]


def numpy(x):
    return ops.convert_to_numpy(x)


def constrain(constraint, scores, row, prompt_length, end=END):
    """The scores after the words of a list, by the sentences that define each constraint."""
    scores = list(scores)
    for word in range(len(scores)):
        is_out = False
        if isinstance(constraint, MinLength):
            is_out = word == end and len(row) - prompt_length < constraint.length
        if isinstance(constraint, NoRepeatNGrams) and word != end:
            n = constraint.n
            grams = [row[i : i + n] for i in range(len(row) - n + 1)]
            is_out = [*row, word][-n:] in grams
        if isinstance(constraint, BannedWords):
            is_out = any([*row, word][-len(banned) :] == banned for banned in constraint.words)
        if isinstance(constraint, RepetitionPenalty) and word in row and word != end:
            scores[word] *= constraint.penalty if scores[word] < 0 else 1 / constraint.penalty
        scores[word] = -np.inf if is_out else scores[word]
    return scores


def rows_of(written, prompt_lengths, index, end=END, width=L):
    """Rows before column `index`, with the rest of the prompts (and what not) behind it."""
    return Rows(
        index=ops.convert_to_tensor(index, "int32"),
        tokens=ops.convert_to_tensor(written, "int32"),
        log_probs=ops.zeros((len(written), width)),
        lengths=ops.convert_to_tensor(np.maximum(prompt_lengths, index), "int32"),
        finished=ops.zeros((len(written),), "bool"),
        prompt_lengths=ops.convert_to_tensor(prompt_lengths, "int32"),
        max_lengths=ops.full((len(written),), width, dtype="int32"),
        end_token=ops.convert_to_tensor(end, "int32"),
        attention=ops.zeros((len(written), width, 0)),
        source_mask=ops.zeros((len(written), 0), "bool"),
    )


@every_constraint
def test_scores_equal_those_of_a_loop(constraints):
    rng = np.random.default_rng(3)
    for index in range(1, L):
        written = rng.choice(V, (37, L), p=[0.3, 0.1, 0.1, 0.2, 0.3])
        prompt_lengths = rng.integers(1, index + 1, 37)
        scores = rng.normal(size=(37, V)) - 1.0
        scores[::3, 2] = -np.inf
        for end in (END, -1):
            found = ops.convert_to_tensor(scores, "float32")
            expected = scores
            for constraint in constraints:
                found = constraint(found, rows_of(written, prompt_lengths, index, end))
                expected = [
                    constrain(constraint, *row, end)
                    for row in zip(
                        expected, written[:, :index].tolist(), prompt_lengths, strict=True
                    )
                ]
            np.testing.assert_allclose(numpy(found), expected, rtol=1e-6)


def allowed_scores(model, constraints, row, prompt_length):
    scores = model.table[0, len(row) - 1, row[-2] if len(row) > 1 else 0, row[-1]]
    for constraint in constraints:
        scores = constrain(constraint, scores, row, prompt_length)
    return np.array(scores)


def all_continuations(model, constraints, prompt, total=0.0, prompt_length=None):
    """Every sequence that the constraints leave, with its total, by trying all words."""
    prompt_length = len(prompt) if prompt_length is None else prompt_length
    ended = len(prompt) == L or (len(prompt) > prompt_length and prompt[-1] == END)
    scores = [] if ended else allowed_scores(model, constraints, prompt, prompt_length)
    words = [w for w, score in enumerate(scores) if score > -np.inf]
    if not words:  # also where nothing is left to write
        return [(total, prompt)]
    found = [
        all_continuations(model, constraints, [*prompt, w], total + scores[w], prompt_length)
        for w in words
    ]
    return list(itertools.chain(*found))


def buffer(prompts):
    tokens = np.full((len(prompts), L), PAD)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
    return tokens, [len(prompt) for prompt in prompts]


@pytest.mark.slow
@every_constraint
def test_a_wide_beam_equals_brute_force(constraints):
    model, prompts = Table(7, V), [[2, 3], [0, 4, 0], [4, 3, 2, 4]]
    beams = BeamSearch(V**4 + 1, num_results=5)(
        model, *buffer(prompts), end_token=END, constraints=constraints
    )
    for row, prompt in enumerate(prompts):
        expected = sorted(all_continuations(model, constraints, prompt), reverse=True)[:5]
        for k, (total, sequence) in enumerate(expected):
            assert numpy(beams.tokens)[row, k].tolist() == sequence + [PAD] * (L - len(sequence))
            assert int(beams.lengths[row, k]) == len(sequence)
            np.testing.assert_allclose(beams.scores[row, k], total, rtol=1e-5)
        assert (numpy(beams.scores)[row, len(expected) :] == -np.inf).all()


@every_constraint
def test_greedy_is_a_loop_and_a_beam_of_one(constraints):
    model, prompts = Table(9, V), [[2], [0, 4, 0], [4, 3, 2], [1, 1]]
    arguments = {"end_token": END, "constraints": constraints}
    result = GreedySampler()(model, *buffer(prompts), **arguments)
    for row, prompt in enumerate(prompts):
        written, scores = list(prompt), np.zeros(V)
        while len(written) < L:
            scores = allowed_scores(model, constraints, written, len(prompt))
            if (scores == -np.inf).all():
                break
            written.append(int(np.argmax(scores)))
            if written[-1] == END:
                break
        assert numpy(result.tokens)[row].tolist() == written + [PAD] * (L - len(written))
        assert int(result.lengths[row]) == len(written)
    beams = BeamSearch(1)(model, *buffer(prompts), **arguments)
    np.testing.assert_array_equal(beams.tokens[:, 0], result.tokens)
    np.testing.assert_array_equal(beams.lengths[:, 0], result.lengths)
    np.testing.assert_array_equal(beams.word_log_probs[:, 0], result.log_probs)


@pytest.mark.parametrize("search", [*SAMPLERS, BeamSearch(3, 0.6)], ids=by_name)
def test_no_search_writes_what_is_ruled_out_whatever_the_batch(search):
    model, prompts = Table(2, V), [[2], [0, 4, 0], [4, 3, 2]]
    constraints = CONSTRAINTS["all"]
    seeds = {} if isinstance(search, BeamSearch) else {"seed": np.array([3, 5, 7])}
    arguments = {"end_token": END, "constraints": constraints}
    result = search(model, *buffer(prompts), **arguments, **seeds)
    for row, prompt in enumerate(prompts):
        beams = numpy(result.tokens)[row].reshape(-1, L)
        lengths = numpy(result.lengths)[row].reshape(-1)
        for tokens, length in zip(beams.tolist(), lengths, strict=True):
            assert length > len(prompt)
            for t in range(len(prompt), length):
                scores = allowed_scores(model, constraints, tokens[:t], len(prompt))
                assert scores[tokens[t]] > -np.inf
    seed = {name: value[1:2] for name, value in seeds.items()}
    alone = search(model, *buffer(prompts[1:2]), **arguments, **seed)
    for a, b in zip(alone, result, strict=True):
        np.testing.assert_allclose(a[0], b[1], rtol=1e-6)


def test_before_a_row_begins_there_are_no_words():
    """A row of one word may not pass for one with the same word several times before it."""
    scores = np.zeros((1, V), "float32")
    banned = BannedWords([[2, 2, 3], [2, 2, 2, 4], [2, 0]])
    assert numpy(banned(scores, rows_of([[2]], [1], 1)))[0].tolist() == [-np.inf, 0, 0, 0, 0]
    assert numpy(banned(scores, rows_of([[2, 2]], [1], 2)))[0].tolist() == [
        -np.inf,
        0,
        0,
        -np.inf,
        0,
    ]


@pytest.mark.parametrize("search", [GreedySampler(), BeamSearch(2)], ids=by_name)
def test_a_row_that_has_no_word_left_ends(search):
    prompts, arguments = [[2], [0, 3, 2, 4]], {"end_token": END}
    for constraints, lengths in (
        ([NoRepeatNGrams(1), BannedWords([END])], [4, 4]),  # all four other words once
        ([BannedWords([0, 1, 2, 3, 4])], [1, 4]),
        ([NoRepeatNGrams(1), BannedWords([[4, w] for w in range(V)])], [None, 4]),
    ):
        result = search(Table(5, V), *buffer(prompts), constraints=constraints, **arguments)
        found = numpy(result.lengths).reshape(2, -1)[:, 0]
        assert [a for a, b in zip(found, lengths, strict=True) if b not in (a, None)] == []
        tokens = numpy(result.tokens).reshape(2, -1, L)[:, 0]
        for row, length in enumerate(found):
            assert len({*tokens[row, :length].tolist()}) == length
            assert (tokens[row, length:] == PAD).all()


@pytest.mark.parametrize("search", [GreedySampler(), BeamSearch(2)], ids=by_name)
def test_a_prompt_goes_on_where_no_word_would_be_left(search):
    constraints = [BannedWords([[2, word] for word in range(V)])]
    prompts = [[4], [0, 2, 3]]
    result = search(Table(5, V), *buffer(prompts), constraints=constraints, end_token=END)
    tokens, lengths = numpy(result.tokens).reshape(2, -1, L), numpy(result.lengths).reshape(2, -1)
    assert (lengths[1] > 3).all() and (tokens[1, :, :3] == prompts[1]).all()


def test_the_end_may_stand_in_the_prompt():
    """Where each line begins with the end of the one before, repetition cannot rule it out."""
    model, prompts = Table(3, V), [[END, 3, END], [END]]
    constraints = [NoRepeatNGrams(1), RepetitionPenalty(50.0)]
    result = GreedySampler()(model, *buffer(prompts), end_token=END, constraints=constraints)
    for row, prompt in enumerate(prompts):
        written = numpy(result.tokens)[row, len(prompt) : int(result.lengths[row])].tolist()
        assert written.index(END) == len(written) - 1


@pytest.mark.slow
@pytest.mark.parametrize("search", [TopPSampler(0.9), BeamSearch(3)], ids=by_name)
def test_compiled_it_gives_the_same(search):
    model, (tokens, lengths) = Table(8, V), buffer([[2], [0, 4, 0], [4, 3]])
    seed = {} if isinstance(search, BeamSearch) else {"seed": 3}

    def decode(tokens, lengths):
        constraints = CONSTRAINTS["all"]
        return tuple(search(model, tokens, lengths, end_token=END, constraints=constraints, **seed))

    expected = decode(tokens, lengths)
    for compiled in compiled_versions(decode):
        result = compiled(
            ops.convert_to_tensor(tokens, "int32"), ops.convert_to_tensor(lengths, "int32")
        )
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(numpy(a), numpy(b), rtol=1e-6)


def test_an_empty_batch():
    result = BeamSearch(2)(
        Table(1, V), np.zeros((0, L)), [], end_token=END, constraints=CONSTRAINTS["all"]
    )
    assert tuple(result.tokens.shape) == (0, 2, L)


def test_generate_takes_them():
    result = generate(Table(4, V), [[2]], L, constraints=[NoRepeatNGrams(1)])
    assert len(set(numpy(result.tokens)[0, : int(result.lengths[0])].tolist())) == V


@every_constraint
def test_config_round_trip(constraints):
    for constraint in constraints:
        data = keras.saving.serialize_keras_object(constraint)
        copy = keras.saving.deserialize_keras_object(data)
        assert type(copy) is type(constraint)
        assert copy.get_config() == constraint.get_config() == vars(constraint)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MinLength(0), "`length` must be a positive integer"),
        (lambda: RepetitionPenalty(0.0), "`penalty` must be positive"),
        (lambda: RepetitionPenalty(float("nan")), "`penalty` must be positive"),
        (lambda: NoRepeatNGrams(0), "`n` must be a positive integer"),
        (lambda: BannedWords([]), "`words` must be a non-empty list"),
        (lambda: BannedWords([[]]), "`words` must be a non-empty list"),
        (lambda: BannedWords([[3, -1]]), "`words` must be a non-empty list"),
        (
            lambda: generate(Table(4, V), [[2]], L, constraints=[BannedWords([[V, 1]])]),
            "`words` must be token ids from 0 to 4",
        ),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "Received:" in str(error.value)
