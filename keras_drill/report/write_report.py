"""The report: one HTML page about one or several training runs."""

import os
import pathlib
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.report.configuration_section import configuration_section, environment_section
from keras_drill.report.elements import element
from keras_drill.report.frequency_section import frequency_section
from keras_drill.report.learning_curves import learning_curves_section
from keras_drill.report.results_section import results_section, summarize
from keras_drill.report.run_summary import RunSummary
from keras_drill.report.samples_section import samples_section
from keras_drill.report.style import STYLE

# Even a page that somebody tampers with loads nothing and runs nothing.
_NOTHING_FROM_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'"


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

    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_NOTHING_FROM_OUTSIDE),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", STYLE),
    )
    header = element(
        "header",
        element("h1", title, dir="auto"),
        element("p", summary or summarize(runs), class_="summary", dir="auto"),
    )
    page = element("html", head, element("body", header, element("main", *sections)), lang="en")
    return _replace(
        pathlib.Path(path),
        "<!DOCTYPE html>\n" + ElementTree.tostring(page, encoding="unicode", method="html"),
    )


def _replace(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path
