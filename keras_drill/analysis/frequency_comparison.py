"""The comparison of two language models by word frequency."""

import dataclasses

from keras_drill.analysis.frequency_bin import FrequencyBin


@dataclasses.dataclass(frozen=True)
class FrequencyComparison:
    """Two language models on the same text, by the training-set frequency of the target word.

    Made by `keras_drill.analysis.compare_by_frequency`.

    Args:
        name_a: Name of model A.
        name_b: Name of model B.
        bins: The `FrequencyBin`s, rarest words first.
        overall: All tokens as one bin.
        confidence: Coverage of the bootstrap intervals, for example 0.95.
        block_size: Consecutive tokens that the bootstrap draws together.
    """

    name_a: str
    name_b: str
    bins: tuple[FrequencyBin, ...]
    overall: FrequencyBin
    confidence: float
    block_size: int
