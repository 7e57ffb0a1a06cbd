"""Report sections about the outputs of encoder–decoders: scores, texts and differences."""

from xml.etree import ElementTree

from keras_drill.workbench.tasks.sequence_to_sequence.sections.attention_section import (
    attention_section,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections.bin_sections import (
    length_section,
    word_accuracy_section,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections.evaluated_translations import (
    AttentionMap,
    EvaluatedSystem,
    EvaluatedTranslations,
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
    "EvaluatedSystem",
    "EvaluatedTranslations",
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
    evaluated: EvaluatedTranslations, ranks_perplexity: bool = True
) -> list[ElementTree.Element]:
    """Builds the sections in their order on the page. Sections without data are omitted.

    Args:
        evaluated: The models with their outputs, in the order of the runs on the page.
        ranks_perplexity: Whether the perplexities of the systems can be compared.
    """
    comparison = evaluated.comparison
    sections = [scores_section(evaluated, ranks_perplexity), length_section(comparison.by_length)]
    if comparison.by_frequency is not None:
        sections.append(word_accuracy_section(comparison.by_frequency))
    sections.append(examples_section(evaluated))
    if len(evaluated.systems) > 1:
        sections.append(differences_section(evaluated))
    if any(system.attention for system in evaluated.systems):
        sections.append(attention_section(evaluated))
    return sections
