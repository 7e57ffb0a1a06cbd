"""Beam search against all sequences there are, and its invariances."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.decoding import (
    AddonsBeamSearch,
    BeamSearch,
    DecodingStep,
    GreedySampler,
    generate,
)

V, L, END, PAD = 3, 5, 1, 0
WIDE = V**L  # no beam is ever left out


class Table(DecodingStep):
    """A model whose words depend on the last two words, the column, and the sequence's input."""

    def __init__(self, seed, vocabulary_size=V, scale=2.0):
        super().__init__(vocabulary_size)
        rng = np.random.default_rng(seed)
        scores = scale * rng.normal(size=(7, 23, *[vocabulary_size] * 3))
        self.table = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        self.tensor = ops.convert_to_tensor(self.table.astype("float32"))

    def begin(self, inputs, batch_size, length):
        zeros = ops.zeros((batch_size,), "int32")
        kinds = zeros if inputs is None else ops.convert_to_tensor(inputs, "int32")
        return {"kinds": kinds}, {"last": zeros, "position": zeros}

    def kinds_of_rows(self, tokens, constants):
        kinds = constants["kinds"]
        per_sequence = ops.shape(tokens)[0] // ops.maximum(ops.shape(kinds)[0], 1)
        rows = ops.arange(ops.shape(tokens)[0]) // ops.maximum(per_sequence, 1)
        return ops.take(kinds, rows, axis=0)

    def read(self, tokens, constants, state):
        kinds = self.kinds_of_rows(tokens, constants)
        index = ops.stack([kinds, state["position"], state["last"], tokens], axis=-1)
        flat = ops.reshape(self.tensor, (-1, self.vocabulary_size))
        sizes = self.table.shape
        place = ((index[:, 0] * sizes[1] + index[:, 1]) * sizes[2] + index[:, 2]) * sizes[3]
        hidden = ops.take(flat, place + index[:, 3], axis=0)
        return hidden, {"last": tokens, "position": state["position"] + 1}

    def log_probs(self, hidden):
        return hidden


class TableOfLogits(Table):
    """The same model, which tells logits as well."""

    def logit_scorer(self):
        return lambda hidden: hidden + 50.0 * ops.cos(7.0 * hidden[:, :1])


def all_sequences(model, prompt, kind, penalty, forbidden=()):
    """All continuations with their scores, the best first, by a loop over every one of them."""
    found = []
    room = L - len(prompt)
    words = [w for w in range(model.vocabulary_size) if w not in forbidden]
    for count in range(1, room + 1):
        for written in itertools.product(words, repeat=count):
            if END in written[:-1] or (written[-1] != END and count < room):
                continue
            sequence, total = list(prompt), 0.0
            for word in written:
                last = sequence[-2] if len(sequence) > 1 else 0
                total += model.table[kind, len(sequence) - 1, last, sequence[-1], word]
                sequence.append(word)
            found.append((total / ((5 + count) / 6) ** penalty, total, sequence))
    return sorted(found, reverse=True)


def search_for(search, model, prompts, kinds=None, **options):
    tokens = np.full((len(prompts), L), PAD)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
    lengths = [len(prompt) for prompt in prompts]
    beams = search(model, tokens, lengths, inputs=kinds, **{"end_token": END, **options})
    return [ops.convert_to_numpy(x) for x in beams]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_equals_brute_force(seed, penalty):
    model, prompts, kinds = Table(seed), [[2], [0, 2], [2, 0, 2]], np.array([3, 5, 1])
    n = 4
    for search in (BeamSearch(WIDE, penalty), BeamSearch(WIDE, penalty, num_results=n)):
        tokens, lengths, scores, totals, words, _ = search_for(search, model, prompts, kinds)
        for row, prompt in enumerate(prompts):
            expected = all_sequences(model, prompt, kinds[row], penalty)[: len(scores[row])]
            count = min(len(expected), n)
            for k in range(count):
                score, total, sequence = expected[k]
                np.testing.assert_allclose([scores[row, k], totals[row, k]], [score, total], 1e-5)
                assert tokens[row, k, : lengths[row, k]].tolist() == sequence
                assert (tokens[row, k, lengths[row, k] :] == PAD).all()
                np.testing.assert_allclose(words[row, k].sum(), total, 1e-5)
        there = [min(len(scores[0]), len(all_sequences(model, p, 0, 0))) for p in prompts]
        assert [int((s > -np.inf).sum()) for s in scores] == there


@pytest.mark.slow
def test_narrow_beams_are_what_a_plain_loop_finds():
    """The textbook's beam search, one sequence at a time, with lists."""
    for seed, penalty, size in itertools.product(range(3), (0.0, 0.8), (1, 3)):
        model = Table(seed)
        beams = [(0.0, [2])]
        for _ in range(L - 1):
            candidates = []
            for total, sequence in beams:
                if END in sequence[1:]:
                    candidates.append((total, sequence))
                    continue
                last = sequence[-2] if len(sequence) > 1 else 0
                scores = model.table[0, len(sequence) - 1, last, sequence[-1]]
                candidates += [(total + scores[w], [*sequence, w]) for w in range(V)]
            scores = [total / ((4 + len(s)) / 6) ** penalty for total, s in candidates]
            beams = [candidates[place] for place in np.argsort(scores)[::-1][:size]]
        tokens, lengths, _, totals, *_ = search_for(BeamSearch(size, penalty), model, [[2]])
        np.testing.assert_allclose(totals[0], [total for total, _ in beams], 1e-5)
        found = [tokens[0, k, : lengths[0, k]].tolist() for k in range(size)]
        assert found == [sequence for _, sequence in beams]


class WithoutEarlyStop(BeamSearch):
    def is_done(self, rows, memory):
        return ops.all(rows.finished)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [0.0, 1.0, -0.5])
def test_early_stopping_changes_nothing(penalty):
    for seed in range(4):
        model, options = Table(seed, scale=3.0), {"length_penalty": penalty, "num_results": 2}
        found = search_for(BeamSearch(4, **options), model, [[2], [0]])
        expected = search_for(WithoutEarlyStop(4, **options), model, [[2], [0]])
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("penalty", "total", "is_done"),
    [
        (0.0, -2.0, True),  # no better than the second result
        (0.0, -1.9, False),
        (1.0, -3.0, True),  # the best that four words can score is -3 / (9 / 6)
        (1.0, -2.9, False),
        (-1.0, -1.6, True),  # the best is to end with the third word: -1.6 * (8 / 6)
        (-1.0, -1.4, False),
    ],
)
def test_a_search_ends_where_no_live_beam_can_reach_the_results(penalty, total, is_done):
    """Two results of two beams that have ended, and a third beam that has written two words."""
    search = BeamSearch(3, penalty, num_results=2)
    _, (rows, _, memory) = search.begin(Table(1), [[2, 0, 0, 0, 0]], [1], end_token=END)
    rows = rows._replace(
        lengths=ops.convert_to_tensor([3, 3, 3], "int32"),
        finished=ops.convert_to_tensor([True, True, False]),
    )
    memory = memory._replace(
        totals=ops.convert_to_tensor([-1.0, -2.0, total], "float32"),
        scores=ops.convert_to_tensor([-1.0, -2.0, -9.0], "float32"),
    )
    assert bool(search.is_done(rows, memory)) == is_done


def test_one_beam_is_greedy():
    model = Table(11)
    tokens, lengths, _, _, words, _ = search_for(BeamSearch(1), model, [[2], [0, 2]])
    buffer = np.array([[2, 0, 0, 0, 0], [0, 2, 0, 0, 0]])
    greedy = GreedySampler()(model, buffer, [1, 2], end_token=END)
    np.testing.assert_array_equal(tokens[:, 0], greedy.tokens)
    np.testing.assert_array_equal(lengths[:, 0], greedy.lengths)
    np.testing.assert_allclose(words[:, 0], greedy.log_probs, atol=1e-6)


def test_results_do_not_depend_on_the_batch():
    model, prompts, kinds = Table(4), [[2], [0, 2], [0]], np.array([3, 5, 1])
    search = BeamSearch(3, 0.6, num_results=2)
    together = search_for(search, model, prompts, kinds)
    for row, prompt in enumerate(prompts):
        alone = search_for(search, model, [prompt], kinds[row : row + 1])
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a[0], b[row])


def test_forbidden_words_and_own_ends():
    model = Table(5)
    tokens, *_ = search_for(BeamSearch(WIDE), model, [[2]], forbidden_tokens=[0])
    expected = all_sequences(model, [2], 0, 0.0, forbidden=[0])
    found = [row[: row.tolist().index(END) + 1 if END in row[1:] else L] for row in tokens[0]]
    assert [x.tolist() for x in found[: len(expected)]] == [s for *_, s in expected]
    tokens, lengths, *_ = search_for(BeamSearch(2), model, [[2], [0]], max_lengths=[2, 4])
    assert (lengths[0] <= 2).all() and (lengths[1] <= 4).all() and (tokens[0, :, 2:] == PAD).all()


@pytest.mark.slow
def test_groups_differ_and_one_group_is_plain():
    model = Table(6, vocabulary_size=7)
    apart = BeamSearch(4, num_groups=4, diversity=1e3)
    tokens, *_ = search_for(apart, model, [[2]], end_token=None)
    assert len(set(tokens[0, :, 1])) == 4 and len(set(tokens[0, :, 2])) == 4
    same = BeamSearch(4, num_groups=2, diversity=0.0)
    tokens, _, scores, *_ = search_for(same, model, [[2]])
    plain = search_for(BeamSearch(2), model, [[2]])
    np.testing.assert_array_equal(tokens[0, ::2], plain[0][0])  # each group finds the same two
    np.testing.assert_allclose(scores[0, 1::2], plain[2][0], rtol=1e-6)


def diverse_beams(model, prompt, num_beams, num_groups, diversity, penalty, forbidden=()):
    """Groups by a plain loop: what has ended neither pays for words nor makes others pay."""
    size = num_beams // num_groups
    groups = [[(0.0, list(prompt), False)] for _ in range(num_groups)]
    for _ in range(L - len(prompt)):
        counts = np.zeros(model.vocabulary_size)
        for number, beams in enumerate(groups):
            found = []  # cost included, cost apart
            for total, sequence, is_finished in beams:
                if is_finished:
                    count = len(sequence) - len(prompt)
                    found.append((total / ((5 + count) / 6) ** penalty, total, sequence, True))
                    continue
                last = sequence[-2] if len(sequence) > 1 else 0
                scores = model.table[0, len(sequence) - 1, last, sequence[-1]]
                count = len(sequence) - len(prompt) + 1
                for word in set(range(model.vocabulary_size)) - set(forbidden):
                    score = (total + scores[word]) / ((5 + count) / 6) ** penalty
                    cost = diversity * counts[word]
                    found.append(
                        (score - cost, total + scores[word], [*sequence, word], word == END)
                    )
            best = sorted(found, key=lambda one: -one[0])[:size]
            was_live = [sequence for _, sequence, is_finished in beams if not is_finished]
            for _, _, sequence, _ in best:
                if sequence[:-1] in was_live:
                    counts[sequence[-1]] += 1
            groups[number] = [one[1:] for one in best]
    return groups


def assert_groups_are_those_of_a_plain_loop(model, search, prompts, forbidden=()):
    """Returns the groups of each prompt."""
    tokens, lengths, _, totals, *_ = search_for(search, model, prompts, forbidden_tokens=forbidden)
    arguments = search.num_beams, search.num_groups, search.diversity, search.length_penalty
    found_groups = []
    for row, prompt in enumerate(prompts):
        groups = diverse_beams(model, prompt, *arguments, forbidden)
        expected = sorted((beam for beams in groups for beam in beams), key=lambda b: (b[0], b[1]))
        found = sorted(
            (float(totals[row, k]), tokens[row, k, : lengths[row, k]].tolist())
            for k in range(search.num_beams)
        )
        assert [sequence for _, sequence in found] == [sequence for _, sequence, _ in expected]
        np.testing.assert_allclose([t for t, _ in found], [t for t, *_ in expected], rtol=1e-5)
        found_groups.append(groups)
    return found_groups


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("diversity", [0.3, 2.0])
def test_groups_are_those_of_a_plain_loop(diversity, penalty):
    """Also where beams of a group have ended, whatever words other groups choose."""
    search = WithoutEarlyStop(6, penalty, num_groups=3, diversity=diversity)
    some_ended = 0
    for seed in range(12):
        model = Table(seed, vocabulary_size=4, scale=1.0)
        (groups,) = assert_groups_are_those_of_a_plain_loop(model, search, [[2]])
        some_ended += any(len(s) < L for s in (beam[1] for beams in groups[1:] for beam in beams))
    assert some_ended > 6


@pytest.mark.parametrize(
    ("search", "forbidden"),
    [
        (WithoutEarlyStop(6, 1.0, num_groups=3, diversity=0.3), []),
        (WithoutEarlyStop(6, num_groups=3, diversity=2.0), [3]),
        (WithoutEarlyStop(3, 0.7), [0, 3]),
    ],
    ids=["groups", "far groups", "one group"],
)
def test_few_beams_are_those_of_a_plain_loop(search, forbidden):
    prompts = [[0], [2], [3], [4, 5], [6]]
    assert_groups_are_those_of_a_plain_loop(Table(2, 7, scale=0.5), search, prompts, forbidden)


@pytest.mark.slow
def test_compiled():
    model, search = Table(8), BeamSearch(3, 0.6)
    buffer = np.array([[2, 0, 0, 0, 0], [0, 2, 0, 0, 0]])
    expected = search(model, buffer, [1, 2], end_token=END)

    def run(buffer, lengths):
        return search(model, buffer, lengths, end_token=END)

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        runs = [tf.function(run, jit_compile=jit) for jit in (False, True)]
    else:
        import jax

        runs = [jax.jit(run)]
    for compiled in runs:
        found = compiled(ops.convert_to_tensor(buffer), ops.convert_to_tensor([1, 2]))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_no_sequences():
    tokens, _, scores, *_ = search_for(BeamSearch(3), Table(1), [])
    assert tokens.shape == (0, 3, L) and scores.shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_beams": 0}, "`num_beams` must be a positive"),
        ({"num_beams": 2, "num_results": 3}, "`num_results` must be from 1 to"),
        ({"num_beams": 4, "num_groups": 3}, "`num_groups` must divide"),
        ({"length_penalty": float("nan")}, "`length_penalty` must be finite"),
        ({"diversity": -1.0}, "`diversity` finite and not negative"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BeamSearch(**arguments)


def test_config():
    search = BeamSearch(6, 0.7, 2, 3, 0.1)
    assert BeamSearch.from_config(search.get_config()).get_config() == search.get_config()


def test_generate_takes_a_beam_search():
    step, search, told = Table(3), BeamSearch(3, num_results=2), []
    prompts, buffer = [[2, 0], [1]], np.array([[2, 0, 0, 0, 0], [1, 0, 0, 0, 0]])
    expected = search(step, buffer, [2, 1], end_token=END, inputs=[0, 5])
    options = {"sampler": search, "end_token": END, "inputs": [0, 5]}
    found = generate(step, prompts, L, **options)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(one), ops.convert_to_numpy(other))
    generate(step, prompts, L, **options, on_tokens=told.append)
    best = [sum((news[row] for news in told), []) for row in range(2)]  # noqa: RUF017
    tokens, lengths = (ops.convert_to_numpy(x)[:, 0] for x in (found.tokens, found.lengths))
    assert best == [tokens[0, 2 : lengths[0]].tolist(), tokens[1, 1 : lengths[1]].tolist()]
    for wrong in ({"seed": 3}, {"num_samples": 2}):
        with pytest.raises(
            ValueError, match=r"must be omitted if `sampler` is not .* no random choices"
        ):
            generate(step, prompts, L, **options, **wrong)


@pytest.mark.slow
@pytest.mark.parametrize("end", [END, None])
@pytest.mark.parametrize("penalty", [0.0, 1.5, pytest.param(-0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [BeamSearch, AddonsBeamSearch])
def test_no_continuation_that_could_be_chosen_is_left_out(kind, penalty, end):
    """Of each row only the best words are looked at, which are those of all words."""

    class OfAllWords(kind):
        def shortlist(self, scores, rows, spare=0):
            words = ops.arange(scores.shape[-1], dtype="int32")
            return scores, ops.broadcast_to(words, ops.shape(scores))

    for seed in range(3):
        model = Table(seed, vocabulary_size=11, scale=0.3)  # an end that is not counted may win
        found, expected = (
            search_for(made(2, penalty), model, [[2], [3, 2], [7]], [3, 5, 1], end_token=end)
            for made in (kind, OfAllWords)
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "forbidden", [[0, 5], *(pytest.param(x, marks=pytest.mark.slow) for x in ([], [*range(3, 21)]))]
)
@pytest.mark.parametrize(
    ("kind", "penalty"),
    [
        (BeamSearch, 1.5),
        (AddonsBeamSearch, 0.0),
        pytest.param(BeamSearch, 0.0, marks=pytest.mark.slow),
        pytest.param(AddonsBeamSearch, 1.5, marks=pytest.mark.slow),
    ],
)
def test_logits_find_what_log_probabilities_do(kind, penalty, forbidden):
    options = {"kinds": np.array([3, 5, 1]), "forbidden_tokens": forbidden}
    for seed in range(3):
        found, expected = (
            search_for(kind(2, penalty), step(seed, 23, 1.0), [[2], [21, 2], [1]], **options)
            for step in (TableOfLogits, Table)
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
        written = found[0][:, :, 2:]
        assert not np.isin(written[written != PAD], forbidden).any()


def test_a_forbidden_word_may_have_all_of_the_probability():
    results = []
    for step in (TableOfLogits(3, 7), Table(3, 7)):
        step.tensor = ops.where(ops.arange(7) == 4, 0.0, step.tensor - 300.0)
        options = {"forbidden_tokens": [4], "end_token": None}
        results.append(search_for(BeamSearch(3), step, [[2]], **options))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (results[0][3] < -1200).all() and (results[0][3] > -1300).all()


def test_what_a_subclass_changes_is_not_passed_over():
    class Prefers(BeamSearch):
        def extend(self, log_probs, rows, memory):
            is_preferred = ops.arange(V) == 0
            return super().extend(ops.where(is_preferred, -0.001, log_probs - 9.0), rows, memory)

    for step in (Table, TableOfLogits):
        tokens, *_ = search_for(Prefers(2), step(1), [[2]], end_token=None)
        assert (tokens[0, 0, 1:] == 0).all()
