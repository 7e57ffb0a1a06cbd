import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.decoding import (
    GreedySampler,
    LanguageModelStep,
    MinPSampler,
    Sampler,
    TemperatureSampler,
    TopKSampler,
    TopPSampler,
    generate,
)
from keras_drill.decoding.random_streams import counter_uniform, draw, threefry
from keras_drill.decoding.top_p_sampler import keep_top_p
from tests.decoding.tiny_models import awd_lstm_with_drill

PROMPTS = [[2, 3, 5, 7, 11], [13], [17, 19, 1]]
LENGTH = 13
SAMPLERS = [
    GreedySampler(),
    TemperatureSampler(1.3),
    TopKSampler(3),
    TopPSampler(0.7, 0.9),
    MinPSampler(0.2, 1.1),
]


def numpy(x):
    return ops.convert_to_numpy(x)


def by_name(sampler):
    return type(sampler).__name__


@pytest.mark.parametrize("forbidden", [(), (4, 8, 20)])
def test_greedy_is_the_argmax_of_a_full_recomputation(model, forbidden):
    result = generate(model, PROMPTS, LENGTH, forbidden_tokens=forbidden)
    tokens = numpy(result.tokens)
    scores = numpy(model(tokens)).astype("float64")  # no state: all positions from the beginning
    allowed = scores.copy()
    allowed[:, :, list(forbidden)] = -np.inf
    for row, prompt in enumerate(PROMPTS):
        assert tokens[row, : len(prompt)].tolist() == prompt
        for t in range(len(prompt), LENGTH):
            assert tokens[row, t] == allowed[row, t - 1].argmax()
            expected = scores[row, t - 1, tokens[row, t]]
            assert numpy(result.log_probs)[row, t] == pytest.approx(expected, abs=1e-5)
    assert numpy(result.lengths).tolist() == [LENGTH] * 3


def test_a_finished_sequence_stays_finished(model):
    free = numpy(generate(model, PROMPTS, LENGTH).tokens)
    end_token = int(free[1, 4])  # a token that greedy decoding does reach
    result = generate(model, PROMPTS, LENGTH, end_token=end_token, pad_token=21)
    lengths, tokens = numpy(result.lengths), numpy(result.tokens)
    for row, prompt in enumerate(PROMPTS):
        new = free[row, len(prompt) :].tolist()
        length = len(prompt) + (new.index(end_token) + 1 if end_token in new else len(new))
        assert lengths[row] == length
        assert tokens[row, :length].tolist() == free[row, :length].tolist()
        assert (tokens[row, length:] == 21).all()
        assert (numpy(result.log_probs)[row, length:] == 0).all()
    assert lengths[1] < LENGTH


def test_the_loop_stops_when_all_have_ended(model):
    class CountingStep(LanguageModelStep):
        calls = 0

        def read(self, tokens, constants, state):
            self.calls += 1
            return super().read(tokens, constants, state)

    if keras.backend.backend() != "tensorflow":
        pytest.skip("counts eager calls: JAX traces the loop once")
    step = CountingStep(model)
    end_token = int(generate(model, [[13]], 3).tokens[0, 2])
    generate(step, [[13]], 1009, end_token=end_token)
    assert step.calls <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [*SAMPLERS[2:], *(pytest.param(sampler, marks=pytest.mark.slow) for sampler in SAMPLERS[:2])],
    ids=by_name,
)
def test_a_batch_gives_the_same_as_one_by_one(model, sampler):
    seeds = np.array([101, 103, 107])
    together = generate(model, PROMPTS, LENGTH, sampler=sampler, seed=seeds, end_token=6)
    for row, prompt in enumerate(PROMPTS):
        alone = generate(
            model, [prompt], LENGTH, sampler=sampler, seed=int(seeds[row]), end_token=6
        )
        assert numpy(alone.tokens)[0].tolist() == numpy(together.tokens)[row].tolist()
        np.testing.assert_allclose(
            numpy(alone.log_probs)[0], numpy(together.log_probs)[row], atol=1e-5
        )


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [TemperatureSampler(), TopPSampler(0.9)], ids=by_name)
def test_seeds(model, sampler):
    def text(seed):
        return numpy(generate(model, PROMPTS, LENGTH, sampler=sampler, seed=seed).tokens).tolist()

    assert text(5) == text(5)
    assert text(5) != text(6)
    assert text(None) != text(None)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=by_name)
def test_log_probs_are_those_of_the_model(model, sampler):
    result = generate(model, PROMPTS, LENGTH, sampler=sampler, seed=2)
    tokens = numpy(result.tokens)
    scores = numpy(model(tokens))
    for row, prompt in enumerate(PROMPTS):
        for t in range(len(prompt), LENGTH):
            expected = scores[row, t - 1, tokens[row, t]]
            assert numpy(result.log_probs)[row, t] == pytest.approx(expected, abs=1e-5)
        assert (numpy(result.log_probs)[row, : len(prompt)] == 0).all()


def test_scanned_prompt_equals_parallel_prompt(model):
    step = LanguageModelStep(model)
    tokens = ops.convert_to_tensor(np.arange(21).reshape(3, 7), dtype="int32")
    for count in (0, 1, 5, 7):
        constants, state = step.begin(None, 3, 7)
        parallel = step.prefill(tokens, count, constants, state)
        count = ops.convert_to_tensor(count, dtype="int32")
        scanned = step.prefill(tokens, count, constants, state)
        for a, b in zip(parallel, scanned, strict=True):
            np.testing.assert_allclose(numpy(a), numpy(b), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        *SAMPLERS[:2],
        *(pytest.param(sampler, marks=pytest.mark.slow) for sampler in SAMPLERS[2:]),
    ],
    ids=by_name,
)
def test_compiled_decoding_gives_the_same_text(model, sampler):
    step = LanguageModelStep(model)
    tokens = np.zeros((3, LENGTH), dtype="int32")
    for row, prompt in enumerate(PROMPTS):
        tokens[row, : len(prompt)] = prompt
    lengths = np.array([len(prompt) for prompt in PROMPTS])

    def decode(tokens, lengths):
        return tuple(sampler(step, tokens, lengths, end_token=6, seed=3))

    expected = [numpy(x) for x in decode(tokens, lengths)]
    for compiled in compiled_versions(decode):
        result = compiled(
            ops.convert_to_tensor(tokens), ops.convert_to_tensor(lengths, dtype="int32")
        )
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_allclose(numpy(a), b, atol=1e-5)


def compiled_versions(function):
    if keras.backend.backend() == "jax":
        import jax

        return [jax.jit(function)]
    import tensorflow as tf

    int32 = tf.int32
    unknown = [tf.TensorSpec([None, None], int32), tf.TensorSpec([None], int32)]
    return [
        tf.function(function),
        tf.function(function, input_signature=unknown),
        tf.function(function, jit_compile=True),
    ]


def test_max_lengths_end_each_row_apart(model):
    tokens = np.full((3, LENGTH), 9, dtype="int32")
    result = GreedySampler()(
        LanguageModelStep(model), tokens, [1, 5, 2], max_lengths=[3, 5, LENGTH]
    )
    assert numpy(result.lengths).tolist() == [3, 5, LENGTH]


def test_start_token_makes_an_empty_prompt_possible(model):
    result = generate(model, [[], [2, 3]], 11, start_token=6)
    expected = generate(model, [[6], [6, 2, 3]], 11)
    assert numpy(result.tokens).tolist() == numpy(expected.tokens).tolist()


def test_a_stateful_model_keeps_its_own_state(stateful_model):
    before = [variable.numpy() for variable in stateful_model.backbone.state_variables]
    result = generate(stateful_model, PROMPTS, LENGTH, seed=1)
    assert numpy(result.lengths).tolist() == [LENGTH] * 3
    for variable, value in zip(stateful_model.backbone.state_variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    stateful_model.backbone.reset_state()
    scores = numpy(stateful_model(np.array([PROMPTS[0]])))[0, -1]
    assert numpy(result.tokens)[0, 5] == scores.argmax()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(model, dtype):
    mixed = awd_lstm_with_drill(dtype)
    result = generate(mixed, PROMPTS, LENGTH, sampler=TopPSampler(0.9), seed=1)
    assert keras.backend.standardize_dtype(result.log_probs.dtype) == "float32"
    tokens = numpy(result.tokens)
    scores = numpy(model(tokens))
    for row, prompt in enumerate(PROMPTS):
        for t in range(len(prompt), LENGTH):
            expected = scores[row, t - 1, tokens[row, t]]
            assert numpy(result.log_probs)[row, t] == pytest.approx(expected, abs=0.15)


def test_empty_batch(model):
    result = generate(model, [], 7)
    assert tuple(result.tokens.shape) == (0, 7)
    scanned = GreedySampler()(
        LanguageModelStep(model), np.zeros((0, 7)), ops.zeros((0,), dtype="int32"), seed=1
    )
    assert tuple(scanned.tokens.shape) == (0, 7)


# The distributions that are drawn from


def row_distribution(seed=0, size=29):
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.4)).astype("float32")


def expected_distribution(sampler, p):
    """What the sampler should draw from, in NumPy float64."""
    p = p.astype("float64") ** (1 / sampler.temperature)
    p /= p.sum()
    order = np.argsort(-p, kind="stable")
    keep = len(p)
    if isinstance(sampler, TopKSampler):
        keep = sampler.k
    if isinstance(sampler, TopPSampler):
        keep = 1 + int((np.cumsum(p[order])[:-1] < sampler.p).sum())
    if isinstance(sampler, MinPSampler):
        keep = int((p >= sampler.p * p.max()).sum())
    q = np.zeros_like(p)
    q[order[:keep]] = p[order[:keep]]
    return q / q.sum()


def chi_square_limit(freedom):
    """The 99.9 % quantile (Wilson-Hilferty)."""
    return freedom * (1 - 2 / (9 * freedom) + 3.09 * np.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize(
    "sampler",
    [
        TemperatureSampler(),
        TemperatureSampler(0.6),
        TemperatureSampler(1.7),
        TopKSampler(7),
        TopKSampler(5, 1.9),
        TopPSampler(0.8),
        TopPSampler(0.5, 1.5),
        TopPSampler(1.0),
        MinPSampler(0.1),
        MinPSampler(0.3, 2.3),
    ],
    ids=lambda s: by_name(s) + str(list(s.get_config().values())),
)
def test_frequencies_match_probabilities(sampler):
    p, draws = row_distribution(), 40009
    keys = np.stack([np.full(draws, 7), np.arange(draws)], axis=-1)
    uniforms = counter_uniform(ops.convert_to_tensor(keys, dtype="uint32"), 1)[:, 0]
    log_probs = ops.broadcast_to(ops.log(ops.convert_to_tensor(p)), (draws, len(p)))
    drawn = np.bincount(numpy(sampler.choose(log_probs, uniforms)), minlength=len(p))
    expected = expected_distribution(sampler, p) * draws
    assert (drawn[expected == 0] == 0).all()
    # Cells where chi-square holds; the rare words are pooled.
    common = expected >= 5
    observed = np.append(drawn[common], drawn[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    assert statistic < chi_square_limit(len(wanted) - 1)


def test_top_p_keeps_at_least_one():
    log_probs = ops.log(ops.convert_to_tensor([[0.4, 0.6], [0.999, 0.001]], dtype="float32"))
    uniforms = ops.convert_to_tensor([0.9999, 0.9999], dtype="float32")
    assert numpy(TopPSampler(1e-6).choose(log_probs, uniforms)).tolist() == [1, 0]


@pytest.mark.parametrize("temperature", [1e-30, 1e30])
def test_what_is_forbidden_stays_so_at_any_temperature(temperature):
    log_probs = ops.array([[-np.inf, -1e38, -2e38, -1e38, -np.inf]])
    for uniform in (0.0, 0.3, 1 - 2**-24):
        for sampler in (TemperatureSampler(temperature), TopKSampler(3, temperature)):
            assert int(sampler.choose(log_probs, ops.array([uniform]))[0]) in (1, 2, 3)


def test_min_p_keeps_words_of_exactly_that_share():
    log_probs = ops.log(ops.convert_to_tensor([[0.125, 0.5, 0.25, 0.125]], dtype="float32"))
    last = ops.convert_to_tensor([1 - 2.0**-24], dtype="float32")
    chosen = [int(MinPSampler(p).choose(log_probs, last)[0]) for p in (0.25, 0.26, 0.5, 0.51, 1.0)]
    assert chosen == [3, 2, 2, 1, 1]


@pytest.mark.parametrize(("p", "kept"), [(0.5, 1), (0.75, 2), (0.76, 3), (0.875, 3), (1.0, 5)])
def test_top_p_keeps_the_fewest_words_that_reach_p(p, kept):
    """Sums of powers of two are exact: a nucleus that reaches p exactly takes no more words."""
    probabilities = ops.convert_to_tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625]], dtype="float32")
    last = ops.convert_to_tensor([1 - 2.0**-24], dtype="float32")
    assert numpy(TopPSampler(p).choose(ops.log(probabilities), last)).tolist() == [kept - 1]
    assert (numpy(keep_top_p(probabilities, p)) > 0).sum() == kept


@pytest.mark.parametrize("p", [1, 1.0, [[1.0]]])
def test_top_p_of_1_drops_no_word(p):
    """The float32 sum of the better words is 1 before the last one."""
    probabilities = ops.convert_to_tensor([[0.5, 0.5, 2.0**-30]], dtype="float32")
    p = ops.convert_to_tensor(p) if isinstance(p, list) else p
    np.testing.assert_array_equal(keep_top_p(probabilities, p), probabilities)


@pytest.mark.slow
def test_samples_of_a_prompt_are_independent_and_reproducible(model):
    def draw_texts(prompts, num_samples):
        result = generate(
            model, prompts, LENGTH, sampler=TemperatureSampler(), seed=3, num_samples=num_samples
        )
        return numpy(result.tokens).reshape(len(prompts), num_samples, -1).tolist()

    five = draw_texts(PROMPTS, 5)
    for row, prompt in enumerate(PROMPTS):
        assert all(text[: len(prompt)] == prompt for text in five[row])
        assert len({str(text) for text in five[row]}) == 5
    assert draw_texts(PROMPTS, 1) == [texts[:1] for texts in five]
    assert draw_texts(PROMPTS[:1], 2) == [five[0][:2]]


@pytest.mark.slow
def test_rows_end_where_they_are_told(model):
    free = generate(model, PROMPTS, LENGTH)
    tokens = np.zeros((3, LENGTH), "int32")
    for row, prompt in enumerate(PROMPTS):
        tokens[row, : len(prompt)] = prompt

    def ends(rows):  # after two new words, in rows that began with a long prompt
        return ops.logical_and(rows.lengths - rows.prompt_lengths >= 2, rows.prompt_lengths > 1)

    result = GreedySampler()(LanguageModelStep(model), tokens, [5, 1, 3], ends=ends)
    assert numpy(result.lengths).tolist() == [7, LENGTH, 5]
    for row, length in enumerate([7, LENGTH, 5]):
        expected = numpy(free.tokens)[row, :length].tolist()
        assert numpy(result.tokens)[row].tolist() == expected + [0] * (LENGTH - length)


def test_draw_never_returns_the_impossible():
    p = np.array([[0.0, 1e-30, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0, 0, 0, 0, 1e-20]])
    for u in (0.0, 2.0**-24, 0.5, 1 - 2.0**-24):
        uniforms = ops.convert_to_tensor(np.full(3, u), dtype="float32")
        index = numpy(draw(ops.convert_to_tensor(p, dtype="float32"), uniforms))
        assert (np.take_along_axis(p, index[:, None], axis=1) > 0).all()


def test_threefry_known_answers():
    """The vectors published with Random123."""
    answers = [
        ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for arguments, expected in answers:
        words = threefry(*[ops.convert_to_tensor([x], dtype="uint32") for x in arguments])
        assert tuple(int(numpy(word)[0]) for word in words) == expected


def test_a_sampler_of_ones_own(model):
    class SecondBest(Sampler):
        def choose(self, log_probs, uniforms):
            return ops.top_k(log_probs, 2)[1][:, 1]

    result = generate(model, [[3]], 2, sampler=SecondBest())
    scores = numpy(model(np.array([[3]])))[0, 0]
    assert numpy(result.tokens)[0, 1] == np.argsort(-scores)[1]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=by_name)
def test_config_round_trip(sampler):
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(sampler))
    assert type(copy) is type(sampler)
    assert copy.get_config() == sampler.get_config() == vars(sampler)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: TemperatureSampler(0), "GreedySampler"),
        (lambda model: TemperatureSampler(-1.0), "`temperature` must be positive"),
        (lambda model: TemperatureSampler(1e-40), "`temperature` must be .* from 1e-30 to 1e30"),
        (lambda model: TemperatureSampler(1e40), "`temperature` must be .* from 1e-30 to 1e30"),
        (lambda model: TopKSampler(0), "`k` must be a positive integer"),
        (lambda model: TopPSampler(0.0), "`p` must be above 0"),
        (lambda model: TopPSampler(1.1), "`p` must be above 0"),
        (lambda model: MinPSampler(0.0), "`p` must be above 0"),
        (lambda model: generate(model, [[1], []], 5), "an empty prompt at row 1"),
        (lambda model: generate(model, [[1, 2, 3]], 2), "`max_length` must be at least"),
        (lambda model: generate(model, [[1, 23]], 5), "`prompts` must hold token ids"),
        (lambda model: generate(model, [[1]], 5, num_samples=0), "`num_samples` must be positive"),
        (lambda model: generate(model, [[1]], 5, lengths=[1, 1]), "`lengths` must have one"),
        (lambda model: generate(model, [[1]], 5, lengths=[2]), "`lengths` must be at most"),
        (
            lambda model: generate(model, [[1]], 5, seed=-1, sampler=TopKSampler(2)),
            "`seed` must be from 0",
        ),
        (lambda model: generate(model, [[1]], 5, forbidden_tokens=[23]), "`forbidden_tokens`"),
        (lambda model: generate(model, [[1]], 5, forbidden_tokens=range(23)), "at least one"),
        (lambda model: generate(model, [[1]], 5, sampler=TopKSampler(24)), "`k` must be at most"),
    ],
)
def test_errors_say_what_was_expected(model, call, message):
    with pytest.raises(ValueError, match=message) as error:
        call(model)
    assert "Received:" in str(error.value)
