import math

import numpy as np
import pytest

from keras_drill.workbench.analysis import compare_by_frequency
from keras_drill.workbench.analysis.compare_by_frequency import FREQUENCY_BOUNDARIES


def _text(size=2_003, vocabulary_size=211, seed=3):
    generator = np.random.default_rng(seed)
    counts = np.round(9_001 / np.arange(1, vocabulary_size + 1) ** 1.7).astype(int)
    counts[-13:] = 0
    counts[:4] = (5000, 4999, 50, 49)  # both sides of a bound
    targets = generator.integers(vocabulary_size, size=size)
    log_probs_a = -generator.gamma(2, 2, size)
    return targets, log_probs_a, log_probs_a + generator.normal(0.1, 0.5, size), counts


def test_means_and_counts_match_a_loop_over_tokens():
    targets, log_probs_a, log_probs_b, counts = _text()
    compared = compare_by_frequency(targets, log_probs_a, log_probs_b, counts, resamples=7)

    bounds = [0, *FREQUENCY_BOUNDARIES, math.inf]
    assert [bin.lower for bin in compared.bins] == bounds[:-1]
    for bin, lower, upper in zip(compared.bins, bounds, bounds[1:], strict=False):
        inside = [i for i, target in enumerate(targets) if lower <= counts[target] < upper]
        assert bin.upper == (None if upper == math.inf else upper)
        assert bin.tokens == len(inside)
        assert bin.types == len({targets[i] for i in inside})
        if inside:
            mean_a = -sum(log_probs_a[i] for i in inside) / len(inside)
            mean_b = -sum(log_probs_b[i] for i in inside) / len(inside)
            assert bin.cross_entropy_a == pytest.approx(mean_a)
            assert bin.cross_entropy_b == pytest.approx(mean_b)
            assert bin.difference == pytest.approx(mean_a - mean_b)
    assert compared.overall.tokens == targets.size
    assert compared.overall.types == len(set(targets))
    assert compared.overall.difference == pytest.approx((log_probs_b - log_probs_a).mean())


def test_standard_error_is_the_textbook_one_for_blocks_of_one_token():
    targets, log_probs_a, log_probs_b, counts = _text()
    compared = compare_by_frequency(
        targets, log_probs_a, log_probs_b, counts, block_size=1, resamples=7
    )
    savings = log_probs_b - log_probs_a
    for bin in compared.bins:
        inside = savings[
            (counts[targets] >= bin.lower) & (counts[targets] < (bin.upper or math.inf))
        ]
        expected = inside.std(ddof=1) / math.sqrt(inside.size) if inside.size > 1 else math.nan
        assert bin.standard_error == pytest.approx(expected, nan_ok=True)


def test_bootstrap_agrees_with_the_standard_error_and_counts_repeated_text_once():
    targets, log_probs_a, log_probs_b, counts = _text(size=5_000)
    whole = compare_by_frequency(
        targets, log_probs_a, log_probs_b, counts, resamples=800, block_size=11
    ).overall
    low, high = whole.interval
    assert (high - low) / (2 * 1.96) == pytest.approx(whole.standard_error, rel=0.15)

    # A text whose tokens come ten times over is no more evidence: blocks must know it.
    repeated = [np.repeat(values, 10) for values in (targets, log_probs_a, log_probs_b)]
    again = compare_by_frequency(*repeated, counts, resamples=7, block_size=110).overall
    assert again.standard_error == pytest.approx(whole.standard_error, rel=1e-9)


def test_ninety_five_percent_intervals_hold_the_truth_ninety_five_times_in_a_hundred():
    held = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        savings = np.repeat(generator.normal(0.1, 1, 60), 5) + generator.normal(0, 1, 300)
        low, high = compare_by_frequency(
            np.zeros(300, "int32"), -savings, np.zeros(300), [7], block_size=5, resamples=200
        ).overall.interval
        held += low < 0.1 < high
    assert 180 <= held <= 198


def test_unseen_words_have_a_bin_only_when_there_are_any():
    def labels(targets):
        zeros = np.zeros(len(targets))
        return [bin.label for bin in compare_by_frequency(targets, zeros, zeros, [0, 7]).bins]

    assert labels([0, 1])[:2] == ["unseen", "1–49"]
    assert labels([1, 1])[0] == "1–49"


def test_bins_with_too_little_text_have_no_interval():
    compared = compare_by_frequency([0, 0, 1], [-1.0, -2, -3], [-1.0, -1, -1], [3, 70])
    first, second = compared.bins[:2]
    assert first.difference == 0.5 and second.difference == 2
    for bin in compared.bins:
        assert math.isnan(bin.standard_error) and math.isnan(bin.interval[0])
        assert not bin.is_significant


def test_a_model_that_rules_a_target_out_spoils_its_own_bin_only():
    log_probs_b = np.array([-1.0, -np.inf, -1, -2])
    compared = compare_by_frequency(
        [0, 1, 0, 0], np.full(4, -3.0), log_probs_b, [3, 70], block_size=1
    )
    first, second = compared.bins[:2]
    assert first.difference == pytest.approx(5 / 3) and math.isfinite(first.interval[0])
    assert second.difference == -math.inf


def test_the_same_seed_gives_the_same_interval():
    arguments = _text(size=503)
    first, second, other = (
        compare_by_frequency(*arguments, resamples=20, seed=seed).overall.interval
        for seed in (5, 5, 7)
    )
    assert first == second != other


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"targets": []}, "`targets` must be a non-empty vector"),
        ({"targets": [0.5, 1.0]}, "`targets` must be a non-empty vector"),
        ({"targets": [0, 2]}, "`targets` must be ids of the 2 words"),
        ({"targets": [0, -1]}, "`targets` must be ids of the 2 words"),
        ({"log_probs_b": [-1.0]}, "`log_probs_b` must have one value per target"),
        ({"training_counts": [[3, 4]]}, "`training_counts` must be a vector"),
        ({"boundaries": (50, 50)}, "`boundaries` must be increasing"),
        ({"boundaries": (0, 50)}, "`boundaries` must be increasing"),
        ({"block_size": 0}, "`block_size` and `resamples`"),
        ({"confidence": 95}, "`confidence` must be between 0 and 1"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {
        "targets": [0, 1],
        "log_probs_a": [-1.0, -2.0],
        "log_probs_b": [-1.0, -2.0],
        "training_counts": [3, 70],
    }
    with pytest.raises(ValueError, match=message) as raised:
        compare_by_frequency(**(arguments | changed))
    assert "Received: " in str(raised.value)
