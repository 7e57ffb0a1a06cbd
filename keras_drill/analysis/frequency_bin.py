"""One word-frequency bin of a comparison between two language models."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class FrequencyBin:
    """What two models did on the tokens whose target word is this frequent in the training set.

    Cross-entropies are means over the bin's tokens, in nats. `difference` is
    `cross_entropy_a - cross_entropy_b`: the nats per token that model B saves, so positive means
    that B is better.

    Args:
        lower: Smallest training count in the bin, included.
        upper: Training count at which the bin ends, excluded; `None` for the last bin.
        tokens: Number of tokens of the evaluated text in the bin.
        types: Number of distinct words among them.
        cross_entropy_a: Mean cross-entropy of model A; NaN when the bin holds no token.
        cross_entropy_b: Mean cross-entropy of model B; NaN when the bin holds no token.
        difference: `cross_entropy_a - cross_entropy_b`.
        standard_error: Standard error of `difference`, blocks of text as the sampling unit; NaN
            when the bin occurs in fewer than two blocks.
        interval: Lower and upper end of the paired bootstrap interval of `difference`; NaN where
            the standard error is.

    Example:

    >>> FrequencyBin(50, 100, 13, 7, 6.5, 6.25, 0.25, 0.0625, (0.125, 0.375)).label
    '50–100'
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
        """The bin's name: `unseen`, `1–50` (50 excluded), ..., `≥ 5000`."""
        if self.upper is None:
            return f"≥ {self.lower}"
        if self.upper == 1:
            return "unseen"
        return f"{self.lower}–{self.upper}"

    @property
    def is_significant(self) -> bool:
        """Whether the bootstrap interval of the difference leaves out zero."""
        low, high = self.interval
        return low > 0 or high < 0
