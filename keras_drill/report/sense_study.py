"""What the senses page says about a model."""

import dataclasses

import numpy as np

from keras_drill.report.studied_word import StudiedWord


@dataclasses.dataclass(frozen=True)
class SenseStudy:
    """The senses of a model's words.

    Args:
        name: Name of the run.
        output_layer: What the output layer is.
        text: Which text was read, in words.
        by_senses: Number of senses to how many words have so many, and some of these words.
        words: The words that were looked at.
        theta: Kernel parameters of all senses, `[M]`; `None` without a kernel.
        angles: Angles in degrees at which kernels were computed, `[A]`.
        kernels: Kernel parameter to the kernel at `angles`, in the order to be drawn; empty without
            a kernel.
    """

    name: str
    output_layer: str
    text: str
    by_senses: dict[int, tuple[int, tuple[str, ...]]]
    words: tuple[StudiedWord, ...]
    theta: np.ndarray | None
    angles: np.ndarray
    kernels: dict[float, np.ndarray]

    @property
    def vocabulary_size(self) -> int:
        """Number of words."""
        return sum(number for number, _ in self.by_senses.values())

    @property
    def mean_senses(self) -> float:
        """Senses per word."""
        senses = sum(senses * number for senses, (number, _) in self.by_senses.items())
        return senses / self.vocabulary_size
