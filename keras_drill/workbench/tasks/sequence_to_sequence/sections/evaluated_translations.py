"""Data of the report sections: systems with outputs for the same sources, and a comparison."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from keras_drill.workbench.analysis.compare_translations import (
    TranslationComparison,
    compare_translations,
)


@dataclasses.dataclass(frozen=True)
class AttentionMap:
    """Attention of a model for one output. Shape letters: S source words, T target words.

    Args:
        source_words: The source's words or pieces, S of them.
        target_words: The output's words or pieces, T of them.
        weights: Attention of each target word to the source words, from 0 to 1, `[T, S]`.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    weights: np.ndarray

    def __post_init__(self) -> None:
        shape = (len(self.target_words), len(self.source_words))
        if self.weights.shape != shape:
            raise ValueError(
                f"`weights` must have the shape (target words, source words) = {shape}. "
                f"Received: shape {self.weights.shape}"
            )


@dataclasses.dataclass(frozen=True)
class EvaluatedSystem:
    """A model ("system") with its outputs for the sources of a test set.

    Args:
        name: Name of the run, unique on a page.
        hypotheses: The outputs, one for each source.
        output_layer: Description of the output layer.
        perplexity: Perplexity of the references; `None` if not measured.
        attention: Attention maps of some sentences, by index.
        note: Remark on the scores for the reader.
    """

    name: str
    hypotheses: Sequence[str]
    output_layer: str = ""
    perplexity: float | None = None
    attention: Mapping[int, AttentionMap] = dataclasses.field(default_factory=dict)
    note: str = ""


@dataclasses.dataclass(frozen=True)
class EvaluatedTranslations:
    """Systems with their outputs for the same test set, and their comparison.

    Args:
        sources: The sources.
        references: References of each source: a text, or several equally good texts.
        systems: The systems. The first one is the baseline of the comparison.
        comparison: Result of `keras_drill.workbench.analysis.compare_translations`.
    """

    sources: Sequence[str]
    references: Sequence[str | Sequence[str]]
    systems: Sequence[EvaluatedSystem]
    comparison: TranslationComparison

    @classmethod
    def evaluate(
        cls,
        sources: Sequence[str],
        references: Sequence[str | Sequence[str]],
        systems: Sequence[EvaluatedSystem],
        training_counts: Mapping[str, int] | None = None,
        tokenize: str = "13a",
        lowercase: bool = False,
    ) -> "EvaluatedTranslations":
        """Compares systems by `keras_drill.workbench.analysis.compare_translations`.

        Example:

        >>> evaluated = EvaluatedTranslations.evaluate(
        ...     ["ein Hund", "zwei Hunde"], ["a dog", "two dogs"],
        ...     [EvaluatedSystem("tied", ["a cat", "two dogs"])],
        ... )
        >>> evaluated.comparison.scores["tied"].exact_match
        50.0
        """
        names = [system.name for system in systems]
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"`systems` must be one or several systems with different names. Received: {names}"
            )
        comparison = compare_translations(
            {system.name: system.hypotheses for system in systems},
            sources,
            references,
            training_counts,
            tokenize=tokenize,
            lowercase=lowercase,
        )
        return cls(sources, references, systems, comparison)
