"""The report: one HTML page about one or several training runs."""

import os
import pathlib
from collections.abc import Mapping, Sequence

from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.report.run_summary import RunSummary


def write_report(
    path: str | os.PathLike,
    runs: Sequence[RunSummary],
    comparison: FrequencyComparison | None = None,
    title: str = "Language models compared",
    summary: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> pathlib.Path:
    """Writes one self-contained HTML page about `runs` and returns its path.

    The page needs no network and no JavaScript: plots are inline SVG, fonts are the reader's. It is
    written beside `path` and renamed, so that a half-written page is never seen.

    Args:
        path: The HTML file, for example `"runs/drill/report.html"`; replaced when it exists.
        runs: The runs, the one that the others are compared with first. Anything that a
            `RunSummary` leaves out is left out of the page.
        comparison: Two of the models by word frequency, from `keras_drill.analysis`.
        title: Title of the page.
        summary: One sentence under the title; by default it is made from the perplexities.
        environment: What the runs ran on, from `describe_environment(...)`.
    """
    raise NotImplementedError
