"""Where one language model is better than another: on which words."""

import numpy as np

from keras_drill.analysis.frequency_bin import FrequencyBin
from keras_drill.analysis.frequency_comparison import FrequencyComparison

FREQUENCY_BOUNDARIES = (1, 50, 100, 250, 500, 1000, 2500, 5000)


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
    """Compares two models over the same text by the training-set frequency of the target word.

    Per token, `d = log p_B(target) - log p_A(target)` is what model B saves. Bin `[l, u)` holds
    the tokens whose target occurs at least `l` and fewer than `u` times in the training set, as in
    the analysis of the DRILL paper; its difference is the mean of `d` over its tokens. Words that
    the training set does not have get the bin `[0, boundaries[0])`, left out when none occurs.

    The tokens of a text are not independent draws, so the noise is measured with blocks of
    `block_size` consecutive tokens as the unit. With `s` and `c` the sum of `d` and the number of
    a bin's tokens in a block, the difference is the ratio `D = Σ s / Σ c`, its standard error is
    `sqrt(n / (n - 1) Σ (s - D c)²) / Σ c` over the `n` blocks in which the bin occurs, and the
    bootstrap draws whole blocks, the same ones for both models. The noise of training (another
    seed gives another model) is not in it: compare seeds for that.

    Args:
        targets: Word ids, `[N]`, in the order of the text.
        log_probs_a: Log-probability of each target under model A, `[N]`.
        log_probs_b: The same under model B, `[N]`.
        training_counts: How often each word occurs in the training set, `[V]`.
        boundaries: Where bins begin, increasing; the last bin has no end.
        names: Names of model A and of model B.
        block_size: Consecutive tokens drawn together; 1 treats tokens as independent (slow for
            long texts).
        resamples: Number of bootstrap draws.
        confidence: Coverage of the bootstrap intervals.
        seed: Seed of the bootstrap.

    Returns:
        A `FrequencyComparison`.

    References:

    - [Pappas and Henderson, 2019](https://arxiv.org/abs/1905.05513), "Deep Residual Output Layers
      for Neural Language Generation"
    """
    raise NotImplementedError
