"""How answers are judged, and what a report says of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from keras_drill.analysis.text_scores import TextScores, score_texts
from keras_drill.report.page.elements import element
from keras_drill.tasks.sequence_to_sequence.config import DecodingConfig
from keras_drill.tasks.sequence_to_sequence.sections import (
    JudgedSystem,
    JudgedTranslations,
    translation_sections,
)
from keras_drill.tasks.task import Judgement


@dataclasses.dataclass(frozen=True)
class Answers(Judgement):
    """What is known of a model that answered the sources of a text.

    Args:
        perplexities: By split.
        scores: BLEU and chrF of the answers.
        sources: The sources.
        references: What they should have been answered.
        answers: What the model answered.
        text_scores: All figures of the answers, with sacrebleu's signatures.
    """

    sources: Sequence[str] = ()
    references: Sequence[str] = ()
    answers: Sequence[str] = ()
    text_scores: TextScores | None = None

    @classmethod
    def score(
        cls,
        perplexities: Mapping[str, float],
        split: str,
        sources: Sequence[str],
        references: Sequence[str],
        answers: Sequence[str],
        tokenize: str,
    ) -> "Answers":
        """Scores answers against references."""
        scores = score_texts(answers, references, tokenize)
        return cls(
            perplexities,
            {f"{split} BLEU": scores.bleu, f"{split} chrF": scores.chrf},
            sources,
            references,
            answers,
            scores,
        )


def report_sections(
    options: DecodingConfig, words: Sequence[Any], judged: Mapping[str, Answers]
) -> list[ElementTree.Element]:
    """What the models answered, side by side, and how they differ."""
    first = next(iter(judged.values()))
    if not all(each.answers for each in judged.values()):
        return []
    if any(
        each.sources != first.sources or each.references != first.references
        for each in judged.values()
    ):
        note = "The texts are not compared: the runs answered different sources."
        return [element("section", element("h2", "Scores of the texts"), element("p", note))]
    systems = [JudgedSystem(name, each.answers) for name, each in judged.items()]
    return translation_sections(
        JudgedTranslations.judge(
            first.sources, first.references, systems, tokenize=options.tokenize
        )
    )
