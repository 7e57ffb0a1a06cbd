"""Sections of reports about models that answer sources: scores, texts, and where they differ."""

from xml.etree import ElementTree

from keras_drill.workbench.tasks.sequence_to_sequence.sections.attention_section import (
    attention_section,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections.bin_sections import (
    length_section,
    word_accuracy_section,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections.judged_translations import (
    AttentionMap,
    JudgedSystem,
    JudgedTranslations,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections.scores_section import (
    scores_section,
    summarize_scores,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections.text_sections import (
    differences_section,
    examples_section,
)

__all__ = [
    "AttentionMap",
    "JudgedSystem",
    "JudgedTranslations",
    "attention_section",
    "differences_section",
    "examples_section",
    "length_section",
    "scores_section",
    "summarize_scores",
    "translation_sections",
    "word_accuracy_section",
]


def translation_sections(
    judged: JudgedTranslations, ranks_perplexity: bool = True
) -> list[ElementTree.Element]:
    """All sections that there is something to say in, in their order on a page.

    Args:
        judged: The systems, in the order of the runs on the page.
        ranks_perplexity: Whether the perplexities of the systems can be compared.
    """
    comparison = judged.comparison
    sections = [scores_section(judged, ranks_perplexity), length_section(comparison.by_length)]
    if comparison.by_frequency is not None:
        sections.append(word_accuracy_section(comparison.by_frequency))
    sections.append(examples_section(judged))
    if len(judged.systems) > 1:
        sections.append(differences_section(judged))
    if any(system.attention for system in judged.systems):
        sections.append(attention_section(judged))
    return sections
