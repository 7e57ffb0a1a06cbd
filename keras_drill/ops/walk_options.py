"""What the walk over tiles is told besides its tensors, and how large that makes a tile."""

import math
from typing import Any, NamedTuple

from keras import ops

DEFAULT_TILE_BYTES = 144 * 2**20


class WalkOptions(NamedTuple):
    """What the walk needs to know besides its tensors.

    Attributes:
        score: The `keras_drill.scores.Score` that compares contexts with labels.
        compute_dtype: Dtype of the matrix products. Everything else is `accumulator_dtype`.
        label_smoothing: Share of the target's probability that is spread over all labels.
        logit_soft_cap: `c` in `c * tanh(scores / c)`, or `None`.
        z_loss: Coefficient of the squared log-normaliser.
        tile_size: Tokens per tile, or `None` to derive it from `tile_bytes`.
        tile_bytes: Memory that one tile of scores may take, in bytes.
    """

    score: Any
    compute_dtype: str = "float32"
    label_smoothing: float = 0.0
    logit_soft_cap: float | None = None
    z_loss: float = 0.0
    tile_size: int | None = None
    tile_bytes: int | None = None

    @property
    def accumulator_dtype(self) -> str:
        return "float64" if self.compute_dtype == "float64" else "float32"

    @property
    def keeps_exponentials(self) -> bool:
        """Whether the derivative is a multiple of what is known of a score at once, row by row.

        But for the targets, and for a term that is the same for all labels. Then a tile holds
        exp(scores), with a soft cap times its slope, in place of the products, and is passed over
        only once. A float16 could not hold the sums of such large exponentials.
        """
        is_even = self.logit_soft_cap is None or not self.label_smoothing
        return self.score.is_linear and is_even and self.compute_dtype != "float16"


def tokens_per_tile(num_contexts: int, num_labels: int, options: WalkOptions) -> int:
    """Number of tokens that a tile may hold."""
    if options.tile_size is not None:
        return options.tile_size
    tile_bytes = options.tile_bytes or DEFAULT_TILE_BYTES
    return max(1, tile_bytes // (4 * num_contexts * num_labels))


def tile_count(num_tokens, num_contexts: int, num_labels: int, options: WalkOptions):
    """Number of tiles that `num_tokens` (an int or a scalar tensor) are cut into."""
    size = tokens_per_tile(num_contexts, num_labels, options)
    if isinstance(num_tokens, int):
        return max(1, math.ceil(num_tokens / size))
    return ops.maximum(1, (num_tokens + size - 1) // size)
