"""Compares two language models by the training-set frequency of the predicted words."""

import dataclasses
from functools import partial

import numpy as np

from keras_drill.workbench.analysis.bins import bin_ends, frequency_label

FREQUENCY_BOUNDARIES = (1, 50, 100, 250, 500, 1000, 2500, 5000)


@dataclasses.dataclass(frozen=True)
class FrequencyBin:
    """Cross-entropies of two models on the tokens whose targets have similar training counts.

    Cross-entropies are means over the bin's tokens, in nats. A positive `difference` means that
    model B is better.

    Args:
        lower: Smallest training count in the bin, included.
        upper: Training count at which the bin ends, excluded; `None` for the last bin.
        tokens: Number of tokens of the evaluated text in the bin.
        types: Number of distinct target words among these tokens.
        cross_entropy_a: Mean cross-entropy of model A; NaN if the bin has no tokens.
        cross_entropy_b: Mean cross-entropy of model B; NaN if the bin has no tokens.
        difference: `cross_entropy_a - cross_entropy_b`, the nats per token that model B saves.
        standard_error: Standard error of `difference`, with blocks of text as the sampling unit;
            NaN if fewer than two blocks have tokens of the bin.
        interval: Lower and upper end of the paired bootstrap interval of `difference`; NaN if the
            standard error is NaN.

    Example:

    >>> FrequencyBin(50, 100, 13, 7, 6.5, 6.25, 0.25, 0.0625, (0.125, 0.375)).label
    '50–99'
    """

    lower: int
    upper: int | None
    tokens: int
    types: int
    cross_entropy_a: float
    cross_entropy_b: float
    difference: float
    standard_error: float
    interval: tuple[float, float]

    @property
    def label(self) -> str:
        """Label with the training counts of the bin: `unseen`, `1–49`, `50–99`, ..., `≥ 5000`."""
        return frequency_label(self.lower, self.upper)

    @property
    def is_significant(self) -> bool:
        """Whether the bootstrap interval of the difference excludes 0."""
        low, high = self.interval
        return low > 0 or high < 0


@dataclasses.dataclass(frozen=True)
class FrequencyComparison:
    """Result of `keras_drill.workbench.analysis.compare_by_frequency`.

    Args:
        name_a: Name of model A.
        name_b: Name of model B.
        bins: The `FrequencyBin`s, rarest words first.
        overall: One bin with all tokens.
        confidence: Coverage of the bootstrap intervals, for example 0.95.
        block_size: Number of consecutive tokens that the bootstrap draws together.
    """

    name_a: str
    name_b: str
    bins: tuple[FrequencyBin, ...]
    overall: FrequencyBin
    confidence: float
    block_size: int


def compare_by_frequency(
    targets: np.ndarray,
    log_probs_a: np.ndarray,
    log_probs_b: np.ndarray,
    training_counts: np.ndarray,
    boundaries: tuple[int, ...] = FREQUENCY_BOUNDARIES,
    names: tuple[str, str] = ("A", "B"),
    block_size: int = 50,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> FrequencyComparison:
    """Compares two models on the same text by the training-set frequency of the target word.

    For each token, model B saves `d = log p_B(target) - log p_A(target)` nats. Bin `[l, u)` holds
    the tokens whose target occurs at least `l` and fewer than `u` times in the training set, as in
    the analysis of the DRILL paper. The difference of a bin is the mean of `d` over its tokens.
    Words with a training count below `boundaries[0]` have a bin of their own, which is dropped if
    empty.

    The tokens of a text are not independent. The sampling unit is therefore a block of `block_size`
    consecutive tokens. Let `s` be the sum of `d` and `c` the number of tokens of a bin in a block.

    - The difference is the ratio `D = Σ s / Σ c`.
    - Its standard error is `sqrt(n / (n - 1) Σ (s - D c)²) / Σ c`, over the `n` blocks that have
      tokens of the bin.
    - The bootstrap draws whole blocks, the same blocks for both models.

    The intervals do not include the variation between training runs with different seeds.

    Args:
        targets: Word ids, `[N]`, in the order of the text.
        log_probs_a: Log-probability of each target under model A, `[N]`.
        log_probs_b: Log-probability of each target under model B, `[N]`.
        training_counts: Number of occurrences of each word in the training set, `[V]`.
        boundaries: Counts at which bins begin, increasing. The last bin has no end.
        names: Names of model A and of model B.
        block_size: Number of consecutive tokens in a block; 1 treats tokens as independent, which
            is slow for long texts.
        resamples: Number of bootstrap draws.
        confidence: Coverage of the bootstrap intervals.
        seed: Seed of the bootstrap.

    Returns:
        A `FrequencyComparison`.

    Example:

    >>> counts = np.array([0, 3, 60, 7000])
    >>> targets = np.array([3, 3, 1, 2, 0, 3])
    >>> log_probs_a = np.array([-1.0, -1.0, -7.0, -5.0, -9.0, -1.0])
    >>> log_probs_b = np.array([-1.0, -1.0, -6.0, -5.0, -9.0, -1.0])
    >>> compared = compare_by_frequency(targets, log_probs_a, log_probs_b, counts, block_size=2)
    >>> [(bin.label, bin.tokens, bin.difference) for bin in compared.bins if bin.tokens]
    [('unseen', 1, 0.0), ('1–49', 1, 1.0), ('50–99', 1, 0.0), ('≥ 5000', 3, 0.0)]

    References:

    - [Pappas and Henderson, 2019](https://arxiv.org/abs/1905.05513), "Deep Residual Output Layers
      for Neural Language Generation"
    """
    targets = np.asarray(targets)
    log_probs_a = np.asarray(log_probs_a, dtype="float64")
    log_probs_b = np.asarray(log_probs_b, dtype="float64")
    training_counts = np.asarray(training_counts)
    _check_arrays(targets, log_probs_a, log_probs_b, training_counts)
    _check_options(block_size, resamples, confidence)
    ends = bin_ends(boundaries)
    bin_of_word = np.searchsorted(boundaries, training_counts, side="right")  # [V]
    num_bins = len(ends)
    types = np.bincount(bin_of_word[np.unique(targets)], minlength=num_bins)
    types = np.append(types, types.sum())  # as in `tokens`, the last entry is the sum of all bins
    by_block = partial(
        _sums_by_block, bins=bin_of_word[targets], num_bins=num_bins, block_size=block_size
    )
    counts = by_block(np.ones(targets.size))
    tokens = counts.sum(axis=0)
    # NaN is intended for 0 / 0 in empty bins, and for ∞ - ∞ at targets of probability 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        savings = by_block(log_probs_b - log_probs_a)
        entropies_a = by_block(-log_probs_a).sum(axis=0) / tokens
        entropies_b = by_block(-log_probs_b).sum(axis=0) / tokens
        differences = savings.sum(axis=0) / tokens
        errors = _standard_errors(counts, savings)
        intervals = _bootstrap_intervals(counts, savings, resamples, confidence, seed)
    intervals[np.isnan(errors)] = np.nan
    *bins, overall = (
        FrequencyBin(
            lower=lower,
            upper=upper,
            tokens=int(tokens[index]),
            types=int(types[index]),
            cross_entropy_a=float(entropies_a[index]),
            cross_entropy_b=float(entropies_b[index]),
            difference=float(differences[index]),
            standard_error=float(errors[index]),
            interval=(float(intervals[index, 0]), float(intervals[index, 1])),
        )
        for index, (lower, upper) in enumerate([*ends, (0, None)])
    )
    return FrequencyComparison(
        name_a=names[0],
        name_b=names[1],
        bins=tuple(bins if bins[0].tokens else bins[1:]),
        overall=overall,
        confidence=confidence,
        block_size=block_size,
    )


def _sums_by_block(
    values: np.ndarray, bins: np.ndarray, num_bins: int, block_size: int
) -> np.ndarray:
    """Sums values over the tokens of each block and bin.

    Args:
        values: Value of each token, `[N]`.
        bins: Bin of each token, `[N]`.
        num_bins: Number of bins.
        block_size: Number of tokens in a block.

    Returns:
        `[blocks, bins + 1]`, with the sum over all bins in the last column.
    """
    blocks = np.arange(values.size) // block_size
    cells = blocks * num_bins + bins
    num_cells = (blocks[-1] + 1) * num_bins
    sums = np.bincount(cells, weights=values, minlength=num_cells).reshape(-1, num_bins)
    return np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1)


def _standard_errors(counts: np.ndarray, savings: np.ndarray) -> np.ndarray:
    """Computes the standard error of a ratio of sums over blocks, `[blocks, bins]` to `[bins]`."""
    occurs_in = np.count_nonzero(counts, axis=0)
    residuals = savings - counts * (savings.sum(axis=0) / counts.sum(axis=0))
    variances = occurs_in / (occurs_in - 1) * np.square(residuals).sum(axis=0)
    errors = np.sqrt(variances) / counts.sum(axis=0)
    return np.where(occurs_in < 2, np.nan, errors)


def _bootstrap_intervals(
    counts: np.ndarray, savings: np.ndarray, resamples: int, confidence: float, seed: int
) -> np.ndarray:
    """Computes bootstrap percentile intervals of the ratio over blocks, `[bins, 2]`."""
    generator = np.random.default_rng(seed)
    num_blocks, num_bins = counts.shape
    table = np.concatenate([savings, counts], axis=1)
    drawn = np.empty((resamples, 2 * num_bins))
    for resample in range(resamples):  # one at a time: all at once needs [resamples, blocks]
        times = np.bincount(generator.integers(num_blocks, size=num_blocks), minlength=num_blocks)
        drawn[resample] = times @ table
    tail = (1 - confidence) / 2
    intervals = np.full((num_bins, 2), np.nan)
    for index in range(num_bins):
        sums, sizes = drawn[:, index], drawn[:, num_bins + index]
        if np.any(sizes > 0):  # a rare bin is missing from some draws
            ratios = sums[sizes > 0] / sizes[sizes > 0]
            intervals[index] = np.quantile(ratios, [tail, 1 - tail])
    return intervals


def _check_options(block_size: int, resamples: int, confidence: float) -> None:
    if block_size < 1 or resamples < 1:
        raise ValueError(
            "`block_size` and `resamples` must be at least 1. "
            f"Received: block_size={block_size}, resamples={resamples}"
        )
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` must be between 0 and 1. Received: confidence={confidence}")


def _check_arrays(
    targets: np.ndarray,
    log_probs_a: np.ndarray,
    log_probs_b: np.ndarray,
    training_counts: np.ndarray,
) -> None:
    if targets.ndim != 1 or targets.size == 0 or not np.issubdtype(targets.dtype, np.integer):
        raise ValueError(
            "`targets` must be a non-empty vector of word ids. "
            f"Received: shape {targets.shape}, dtype {targets.dtype}"
        )
    for name, values in (("log_probs_a", log_probs_a), ("log_probs_b", log_probs_b)):
        if values.shape != targets.shape:
            raise ValueError(
                f"`{name}` must have one value per target, shape {targets.shape}. "
                f"Received: shape {values.shape}"
            )
    if training_counts.ndim != 1:
        raise ValueError(
            "`training_counts` must be a vector with one count per word. "
            f"Received: shape {training_counts.shape}"
        )
    if targets.min() < 0 or targets.max() >= training_counts.size:
        raise ValueError(
            f"`targets` must be ids of the {training_counts.size} words of `training_counts`. "
            f"Received: ids from {targets.min()} to {targets.max()}"
        )
