"""Evaluation of model outputs, and its sections in reports."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from keras_drill.metrics.text_scores import TextScores, score_texts
from keras_drill.workbench.report.page.elements import element
from keras_drill.workbench.tasks.sequence_to_sequence.ceiling import Ceiling
from keras_drill.workbench.tasks.sequence_to_sequence.sections import (
    AttentionMap,
    EvaluatedSystem,
    EvaluatedTranslations,
    translation_sections,
)
from keras_drill.workbench.tasks.task import Evaluation


@dataclasses.dataclass(frozen=True)
class Answers(Evaluation):
    """Evaluation results of an encoder–decoder, with its outputs for the sources of a text.

    Args:
        perplexities: Perplexities by split.
        scores: BLEU and chrF of the outputs, by a name with the split, such as `"test BLEU"`.
        signatures: sacrebleu's signatures of the scores.
        log_probs: Log-probabilities of the targets of each text, in the order of the text.
        sources: The sources.
        references: The references.
        answers: The model's outputs.
        text_scores: All scores of the outputs, with sacrebleu's signatures.
        output_layer: Description of the output layer.
        training_counts: Counts of the words in the training targets.
        attention: Attention maps of some outputs, by index.
        scoring: Arguments of `keras_drill.metrics.score_texts`.
        ceiling: The highest reachable scores.
    """

    sources: Sequence[str] = ()
    references: Sequence[str] = ()
    answers: Sequence[str] = ()
    text_scores: TextScores | None = None
    output_layer: str = ""
    training_counts: Mapping[str, int] | None = None
    attention: Mapping[int, AttentionMap] = dataclasses.field(default_factory=dict)
    scoring: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    ceiling: Ceiling | None = None

    @classmethod
    def score(
        cls,
        log_probs: Mapping[str, np.ndarray],
        split: str,
        sources: Sequence[str],
        references: Sequence[str],
        answers: Sequence[str],
        scoring: Mapping[str, Any],
        **known: Any,
    ) -> "Answers":
        """Scores outputs against references.

        Args:
            log_probs: Log-probabilities of the targets of each text, in the order of the text.
            split: Name of the text of the outputs.
            sources: The sources.
            references: The references.
            answers: The outputs.
            scoring: Arguments of `keras_drill.metrics.score_texts`.
            **known: Other fields of the class, which are not computed here.
        """
        scores = score_texts(answers, references, **scoring)
        return cls(
            {name: math.exp(-each.mean(dtype=np.float64)) for name, each in log_probs.items()},
            {f"{split} BLEU": scores.bleu, f"{split} chrF": scores.chrf},
            {"BLEU": scores.bleu_signature, "chrF": scores.chrf_signature},
            log_probs,
            sources=sources,
            references=references,
            answers=answers,
            text_scores=scores,
            scoring=scoring,
            **known,
        )

    def figures(self) -> dict[str, Any]:
        texts = {} if self.text_scores is None else dataclasses.asdict(self.text_scores)
        ceiling = None if self.ceiling is None else dataclasses.asdict(self.ceiling)
        return {**super().figures(), "text_scores": texts, "ceiling": ceiling}


def report_sections(
    evaluated: Mapping[str, Answers], ranks_perplexity: bool = True
) -> list[ElementTree.Element]:
    """Builds report sections that compare the models' outputs.

    All models are scored with the tokenization of the first one, and in lower case if any model is
    scored in lower case.

    Args:
        evaluated: The models by name.
        ranks_perplexity: Whether the models' perplexities can be compared.
    """
    first = next(iter(evaluated.values()))
    if not all(each.answers for each in evaluated.values()):
        return []
    if any(
        each.sources != first.sources or each.references != first.references
        for each in evaluated.values()
    ):
        note = "The texts are not compared, because the runs have different sources or references."
        return [element("section", element("h2", "Scores of the texts"), element("p", note))]
    systems = [
        EvaluatedSystem(
            name,
            each.answers,
            each.output_layer,
            list(each.perplexities.values())[-1],
            each.attention,
            note="" if each.ceiling is None or each.ceiling.is_reached else str(each.ceiling),
        )
        for name, each in evaluated.items()
    ]
    return translation_sections(
        EvaluatedTranslations.evaluate(
            first.sources,
            first.references,
            systems,
            first.training_counts,
            **{
                **first.scoring,
                "lowercase": any(each.scoring["lowercase"] for each in evaluated.values()),
            },
        ),
        ranks_perplexity,
    )
