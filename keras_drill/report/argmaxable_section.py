"""The section on words that can never be the most probable."""

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np

from keras_drill.report.elements import element, table
from keras_drill.report.formatting import format_count
from keras_drill.report.palette import series_key
from keras_drill.report.run_analysis import RunAnalysis

_MOST_WORDS = 200


def argmaxable_section(runs: Sequence[RunAnalysis]) -> ElementTree.Element:
    """How many words of each run can be the most probable one, and which cannot."""
    rows = []
    for index, run in enumerate(runs):
        counts = run.argmaxable.counts()
        name = element("div", series_key(index), element("bdi", run.name), class_="run")
        rows.append([name, *map(format_count, (len(run.words), *counts.values()))])
    bounds = {run.argmaxable.bound for run in runs if run.argmaxable.bound is not None}
    searched = (
        f" Hidden states with components between −{max(bounds):g} and {max(bounds):g} were "
        "searched, by a direction of each word's own and then by linear programs; words that are "
        f"never chosen are nowhere ahead of all others by more than "
        f"{np.format_float_positional(runs[0].argmaxable.min_lead)} nats."
        if bounds
        else ""
    )
    parts = [
        element("h2", "Words that can be the most probable"),
        element(
            "p",
            "A word is the most probable one somewhere in the text, or for some other hidden "
            "state, or it can never be: greedy decoding will not write it, whatever is read."
            + searched,
            class_="note",
        ),
        table(
            "Words by whether they can be the most probable one",
            ["run", "words", "in the text", "elsewhere", "never", "undecided"],
            rows,
        ),
    ]
    if any(run.argmaxable.counts()["undecided"] for run in runs):
        parts.append(
            element(
                "p",
                "Undecided are words for which no hidden state was found, and no proof that there "
                "is none: those take SciPy, and a softmax of inner products.",
                class_="note",
            )
        )
    for run in runs:
        never = run.never_chosen
        if never:
            shown = " · ".join(never[:_MOST_WORDS])
            more = len(never) - _MOST_WORDS
            parts.append(
                element(
                    "details",
                    element("summary", f"Words that {run.name} never chooses"),
                    element("p", shown + (f" · and {more:,} more" if more > 0 else ""), dir="auto"),
                )
            )
    return element("section", *parts, class_="results")
