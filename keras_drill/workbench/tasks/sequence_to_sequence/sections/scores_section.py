"""The report section with scores: a table of all systems, and a summary in one sentence."""

import math
from collections.abc import Mapping
from xml.etree import ElementTree

from keras_drill.workbench.analysis.paired_bootstrap import SystemScore
from keras_drill.workbench.report.page.elements import best_in_bold, element, table
from keras_drill.workbench.report.page.formatting import MISSING, format_count, format_perplexity
from keras_drill.workbench.report.page.plot import run_name
from keras_drill.workbench.tasks.sequence_to_sequence.sections.evaluated_translations import (
    EvaluatedTranslations,
)


def scores_section(
    evaluated: EvaluatedTranslations, ranks_perplexity: bool = True
) -> ElementTree.Element:
    """Builds a table of BLEU and chrF with intervals and p-values, other metrics, and signatures.

    Columns without values are omitted.

    Args:
        evaluated: The systems.
        ranks_perplexity: Whether the perplexities of the systems can be compared.
    """
    bootstrap = evaluated.comparison.bootstrap
    scores = list(evaluated.comparison.scores.values())
    perplexities = [system.perplexity for system in evaluated.systems]
    ranked = perplexities if ranks_perplexity else [None] * len(perplexities)
    columns = {
        "run and output layer": [
            run_name(index, system.name, system.output_layer)
            for index, system in enumerate(evaluated.systems)
        ],
        **_score_columns("BLEU", bootstrap.bleu),
        **_score_columns("chrF", bootstrap.chrf),
        "BLEU\N{NON-BREAKING HYPHEN}1": _numbers([each.bleu_1 for each in scores]),
        "exact match": [f"{each.exact_match:.1f} %" for each in scores],
        "length ratio": [
            MISSING if math.isnan(each.length_ratio) else f"{each.length_ratio:.3f}"
            for each in scores
        ],
        "perplexity": best_in_bold(ranked, list(map(format_perplexity, perplexities)), min),
    }
    if all(value is None for value in perplexities):
        del columns["perplexity"]
    notes = [
        f"The text has {format_count(scores[0].sentences)} sentences. The number after ± is half "
        "the width of the 95 % bootstrap interval. The length ratio is the number of output words "
        "divided by the number of reference words."
    ]
    if len(evaluated.systems) > 1:
        notes.append(
            "Differences are from the first run; they are bold where the p-value of paired "
            "bootstrap resampling is below 0.05. Intervals and p-values do not include the "
            "variation between training runs with different seeds."
        )
    return element(
        "section",
        element("h2", "Scores of the texts"),
        table(
            "Scores of the texts",
            list(columns),
            [list(row) for row in zip(*columns.values(), strict=True)],
        ),
        *(
            element("p", element("bdi", system.name), f": {system.note}.", class_="note")
            for system in evaluated.systems
            if system.note
        ),
        element("p", " ".join(notes), class_="note"),
        element(
            "p",
            "BLEU ",
            element("code", bootstrap.bleu_signature),
            ", chrF ",
            element("code", bootstrap.chrf_signature),
            ".",
            class_="note",
        ),
        class_="results",
    )


def summarize_scores(evaluated: EvaluatedTranslations) -> list[ElementTree.Element | str]:
    """Summarizes the result in one sentence, by BLEU."""
    bleu = evaluated.comparison.bootstrap.bleu
    best = max(bleu, key=lambda name: bleu[name].score)
    first = evaluated.systems[0].name
    sentence: list[ElementTree.Element | str] = [
        f"Of {len(bleu)} runs, ",
        element("bdi", best),
        f" has the highest BLEU: {bleu[best].score:.2f}",
    ]
    if len(bleu) == 1:
        return [element("bdi", best), f" reaches a BLEU of {bleu[best].score:.2f}."]
    if best == first:
        return [*sentence, "."]
    return [
        *sentence,
        f", {bleu[best].score - bleu[first].score:.2f} above ",
        element("bdi", first),
        f" ({bleu[first].score:.2f})"
        + ("." if bleu[best].is_significant else "; the difference may be due to chance."),
    ]


def format_p_value(value: float) -> str:
    """Formats a p-value with its significant digits.

    >>> format_p_value(0.0312), format_p_value(0.000999)
    ('= 0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _score_columns(
    metric: str, scores: Mapping[str, SystemScore]
) -> dict[str, list[ElementTree.Element | str]]:
    """Makes two columns: the score, and its difference from the first system with the p-value.

    A single system has only the score column.
    """
    first, *_ = values = list(scores.values())
    shown = best_in_bold(
        [each.score for each in values], [_with_interval(each) for each in values], max
    )
    if len(scores) == 1:
        return {metric: shown}
    return {metric: shown, f"{metric} difference": [_difference(each, first) for each in values]}


def _difference(score: SystemScore, first: SystemScore) -> ElementTree.Element | str:
    if score is first:
        return MISSING
    text = f"{score.score - first.score:+.2f}".replace("-", "−")
    shown = element("strong", text) if score.is_significant else element("span", text)
    if score.p_value is None:
        return shown
    return element("span", shown, element("small", f"p {format_p_value(score.p_value)}"))


def _with_interval(score: SystemScore) -> str:
    low, high = score.interval
    half = "" if math.isnan(low) else f" ± {(high - low) / 2:.1f}"
    return f"{score.score:.2f}{half}"


def _numbers(values: list[float]) -> list[ElementTree.Element | str]:
    return best_in_bold(values, [f"{value:.2f}" for value in values], max)
