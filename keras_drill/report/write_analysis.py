"""The page of `keras-drill analyze`."""

import os
import pathlib
from collections.abc import Mapping, Sequence

from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.report.argmaxable_section import argmaxable_section
from keras_drill.report.configuration_section import environment_section
from keras_drill.report.frequency_section import frequency_section
from keras_drill.report.rank_section import rank_section
from keras_drill.report.run_analysis import RunAnalysis
from keras_drill.report.write_page import write_page


def write_analysis(
    path: str | os.PathLike,
    runs: Sequence[RunAnalysis],
    comparisons: Sequence[FrequencyComparison] = (),
    environment: Mapping[str, str] | None = None,
) -> pathlib.Path:
    """Writes one self-contained HTML page about models' output layers and returns its path.

    Args:
        path: The HTML file; replaced when it exists.
        runs: The models, with different names.
        comparisons: Pairs of them by word frequency.
        environment: What the analysis ran on, from `describe_environment(...)`.
    """
    names = [run.name for run in runs]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"`runs` must be one or several runs with different names. Received: {names}"
        )
    sections = [rank_section(runs), argmaxable_section(runs)]
    sections += [
        frequency_section(
            comparison,
            names.index(comparison.name_a),
            names.index(comparison.name_b),
            prefix=f"frequency-{number}",
        )
        for number, comparison in enumerate(comparisons)
    ]
    if environment:
        sections.append(environment_section(environment))
    return write_page(path, "What output layers can say", _summary(runs), sections)


def _summary(runs: Sequence[RunAnalysis]) -> str:
    ranks = "; ".join(f"{run.name} {run.shown_rank}" for run in runs)
    return f"Rank of the log-probabilities of {runs[0].rank.words:,} words: {ranks}."
