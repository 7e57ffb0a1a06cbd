"""The report: one HTML page about one or several training runs."""

import os
import pathlib
from collections.abc import Mapping, Sequence

from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.report.configuration_section import configuration_section, environment_section
from keras_drill.report.frequency_section import frequency_section
from keras_drill.report.learning_curves import learning_curves_section
from keras_drill.report.results_section import results_section, summarize
from keras_drill.report.run_summary import RunSummary
from keras_drill.report.samples_section import samples_section
from keras_drill.report.write_page import write_page


def write_report(
    path: str | os.PathLike,
    runs: Sequence[RunSummary],
    comparison: FrequencyComparison | None = None,
    title: str = "Language models compared",
    summary: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> pathlib.Path:
    """Writes one self-contained HTML page about `runs` and returns its path, by `write_page`.

    Args:
        path: The HTML file, for example `"runs/drill/report.html"`; replaced when it exists.
        runs: The runs, the one that the others are compared with first. Anything that a
            `RunSummary` leaves out is left out of the page.
        comparison: Two of the models by word frequency, from `keras_drill.analysis`.
        title: Title of the page.
        summary: One sentence under the title; by default it is made from the perplexities.
        environment: What the runs ran on, from `describe_environment(...)`.
    """
    names = [run.name for run in runs]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"`runs` must be one or several runs with different names. Received: {names}"
        )
    sections = [results_section(runs)]
    if any(run.history for run in runs):
        sections.append(learning_curves_section(runs))
    if comparison is not None:
        # Models that are none of the runs get the first colours that are free.
        order = list(dict.fromkeys((*names, comparison.name_a, comparison.name_b)))
        sections.append(
            frequency_section(
                comparison, order.index(comparison.name_a), order.index(comparison.name_b)
            )
        )
    if any(run.samples for run in runs):
        sections.append(samples_section(runs))
    if environment:
        sections.append(environment_section(environment))
    if any(run.config for run in runs):
        sections.append(configuration_section(runs))
    return write_page(path, title, summary or summarize(runs), sections)
