"""Writes the HTML pages: reports, analyses of output layers, and senses of words."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from keras_drill.workbench.analysis.compare_by_frequency import FrequencyComparison
from keras_drill.workbench.report.comparability import Comparability, comparability_section
from keras_drill.workbench.report.evaluated_text import texts_section
from keras_drill.workbench.report.facts_sections import configuration_section, environment_section
from keras_drill.workbench.report.frequency_section import frequency_section, no_frequency_section
from keras_drill.workbench.report.learning_curves import learning_curves_section
from keras_drill.workbench.report.output_layer_sections import (
    RunAnalysis,
    argmaxable_section,
    rank_section,
)
from keras_drill.workbench.report.page.elements import element
from keras_drill.workbench.report.page.write_page import write_page
from keras_drill.workbench.report.results_section import results_section, summarize
from keras_drill.workbench.report.run_summary import RunSummary
from keras_drill.workbench.report.sense_sections import (
    SenseStudy,
    kernel_section,
    theta_section,
    words_by_senses_section,
)
from keras_drill.workbench.report.studied_word_section import studied_word_section


def write_report(
    path: str | os.PathLike,
    runs: Sequence[RunSummary],
    sections: Sequence[ElementTree.Element] = (),
    title: str | None = None,
    summary: str | None = None,
    environment: Mapping[str, str] | None = None,
    compared: Sequence[Comparability] = (),
) -> pathlib.Path:
    """Writes one self-contained HTML page about `runs` and returns its path, by `write_page`.

    Args:
        path: The HTML file, for example `"runs/drill/report.html"`. An existing file is replaced.
        runs: The runs. The first one is the baseline of the comparison. The page omits fields that
            a `RunSummary` does not have.
        sections: Further sections of the page, in order. For example, results of
            `frequency_section` and `continuations_section`.
        title: Title of the page; by default the name of the only run, or "Models compared".
        summary: One sentence under the title; by default, a summary of the perplexities.
        environment: Environment of the runs, from `describe_environment(...)`.
        compared: The metrics that can be compared, by text. By default, texts, tokenizers and
            vocabularies are assumed to be equal in all runs.
    """
    _names(runs)
    shown = [results_section(runs, compared)]
    incomparable = [each for each in compared if each.differences]
    if incomparable:
        shown.append(comparability_section(incomparable))
    if any(run.texts for run in runs):
        shown.append(texts_section({run.name: run.texts for run in runs}))
    if any(run.history for run in runs):
        shown.append(learning_curves_section(runs, not incomparable))
    shown += sections
    if environment:
        shown.append(environment_section(environment))
    if any(run.config for run in runs):
        shown.append(configuration_section(runs))
    sentence = summarize(runs, compared) if summary is None else [element("bdi", summary)]
    if title is None:
        title = runs[0].name if len(runs) == 1 else "Models compared"
    return write_page(path, title, sentence, shown)


def write_analysis(
    path: str | os.PathLike,
    runs: Sequence[RunAnalysis],
    comparisons: Sequence[FrequencyComparison] = (),
    environment: Mapping[str, str] | None = None,
    not_compared: Mapping[str, str] | None = None,
) -> pathlib.Path:
    """Writes one self-contained HTML page about models' output layers and returns its path.

    Args:
        path: The HTML file. An existing file is replaced.
        runs: The models, with different names.
        comparisons: Comparisons of pairs of models by word frequency.
        environment: Environment of the analysis, from `describe_environment(...)`.
        not_compared: For each run that is not compared with the first run by word frequency, the
            reason, by name of the run.
    """
    names = _names(runs)
    texts = {run.name: [run.text] for run in runs if run.text is not None}
    sections = [texts_section(texts)] if texts else []
    sections += [rank_section(runs), argmaxable_section(runs)]
    sections += [
        frequency_section(
            comparison,
            names.index(comparison.name_a),
            names.index(comparison.name_b),
            prefix=f"frequency-{number}",
        )
        for number, comparison in enumerate(comparisons)
    ]
    sections += [
        no_frequency_section(names[0], name, reason)
        for name, reason in (not_compared or {}).items()
    ]
    if environment:
        sections.append(environment_section(environment))
    return write_page(path, "Limits of output layers", _ranks(runs), sections)


def _names(runs: Sequence[RunSummary | RunAnalysis]) -> list[str]:
    names = [run.name for run in runs]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"`runs` must be one or several runs with different names. Received: {names}"
        )
    return names


def _ranks(runs: Sequence[RunAnalysis]) -> list[ElementTree.Element | str]:
    is_same = len({run.rank.words for run in runs}) == 1
    parts: list[ElementTree.Element | str] = []
    for run in runs:
        of_words = "" if is_same else f" of {run.rank.words:,} words"
        parts += ["; ", element("bdi", run.name), f" {run.shown_rank}{of_words}"]
    of_words = f" of {runs[0].rank.words:,} words" if is_same else ""
    parts[0] = f"Rank of the log-probabilities{of_words}: "
    return [*parts, "."]


def write_senses(
    path: str | os.PathLike, study: SenseStudy, environment: Mapping[str, str] | None = None
) -> pathlib.Path:
    """Writes one self-contained HTML page about the senses of a model and returns its path.

    Args:
        path: The HTML file. An existing file is replaced.
        study: The senses of the model.
        environment: Environment of the study, from `describe_environment(...)`.
    """
    sections = [words_by_senses_section(study)]
    sections += [
        studied_word_section(word, f"word-{number}") for number, word in enumerate(study.words)
    ]
    if study.theta is not None:
        sections += [theta_section(study.theta, study.words), kernel_section(study)]
    if environment:
        sections.append(environment_section(environment))
    summary: list[ElementTree.Element | str] = [
        element("bdi", study.name),
        f" ({study.output_layer}) has {study.mean_senses:.2f} senses per word. "
        f"The occurrences of words are from {study.text}.",
    ]
    if not any(word.num_senses > 1 and word.distinguishes_senses for word in study.words):
        summary.append(" For none of the words below do the senses depend on the context.")
    return write_page(path, "Senses of words", summary, sections)
