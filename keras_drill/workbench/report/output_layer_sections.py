"""Report sections on limits of output layers: rank, and words that are never chosen."""

import dataclasses
from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from keras_drill.workbench.analysis.argmaxable_words import ArgmaxableWords
from keras_drill.workbench.analysis.rank import RankEstimate
from keras_drill.workbench.report.evaluated_text import EvaluatedText
from keras_drill.workbench.report.page.elements import element, table, words
from keras_drill.workbench.report.page.formatting import format_count
from keras_drill.workbench.report.page.plot import (
    MUTED,
    PAPER,
    inline_svg,
    run_keys,
    run_name,
    series_color,
    series_marker,
)

_LOWEST = 1e-17  # below the rounding of float64; exact zeros are plotted at this value
_MOST_WORDS = 200


@dataclasses.dataclass(frozen=True)
class RunAnalysis:
    """The rank of a model's log-probabilities and the words that it can never choose.

    Args:
        name: Name of the run, unique on a page.
        output_layer: Description of the output layer.
        perplexity: Perplexity of the text.
        rank: From `keras_drill.workbench.analysis.measure_rank`.
        argmaxable: From `keras_drill.workbench.analysis.measure_argmaxable_words`.
        words: The vocabulary, in the order of the ids.
        counts: Counts of the words in the training text; `None` if unknown.
        text: The text, with its size.
    """

    name: str
    output_layer: str
    perplexity: float
    rank: RankEstimate
    argmaxable: ArgmaxableWords
    words: tuple[str, ...]
    counts: tuple[int, ...] | None = None
    text: EvaluatedText | None = None

    @property
    def never_chosen(self) -> list[str]:
        """The words that can never be the most probable one, the most frequent word first."""
        ids = np.flatnonzero(self.argmaxable.unargmaxable)
        if self.counts is not None:
            ids = ids[np.argsort(-np.array(self.counts)[ids], kind="stable")]
        return [self.words[id] for id in ids]

    @property
    def shown_rank(self) -> str:
        """The rank as text, with "≥" if the size of the matrix limits it."""
        return f"≥ {self.rank.rank:,}" if self.rank.is_full else f"{self.rank.rank:,}"

    @property
    def shown_bound(self) -> str:
        """The upper bound of the output layer's rank, as text."""
        return "none" if self.rank.bound is None else f"{self.rank.bound:,}"

    @property
    def shown_edge(self) -> tuple[str, str]:
        """The last singular value above the tolerance and the first one below it.

        Both are relative to the largest singular value.
        """
        values = self.rank.singular_values / self.rank.singular_values[0]
        last, first = (
            f"{values[place]:.0e}" if place < len(values) else "none"
            for place in (self.rank.rank - 1, self.rank.rank)
        )
        return last, first


def rank_section(runs: Sequence[RunAnalysis]) -> ElementTree.Element:
    """Builds the section with singular values and numerical ranks of log-probabilities."""
    plot = inline_svg(
        lambda figure, narrow: _draw(figure, runs),
        "rank",
        "Singular values of the matrix of log-probabilities of "
        + ", ".join(run.name for run in runs)
        + ". The ranks are in the table below.",
    )
    tolerance = runs[0].rank.tolerance
    caption = (
        "Singular values of the matrix of log-probabilities of all words at "
        f"{format_count(runs[0].rank.tokens)} positions of the text, relative to the largest one, "
        "computed in float64. The rank, shown by a marker, is the number of singular values above "
        f"the dashed line, {tolerance:.0e}. For a softmax of inner products, the rank is at most "
        "d + 2: d is the width of the labels, the bias adds 1 and the normalizer adds 1."
    )
    rows: list[list[ElementTree.Element | str]] = [
        [
            run_name(index, run.name, run.output_layer),
            run.shown_rank,
            run.shown_bound,
            *run.shown_edge,
            format_count(run.rank.tokens),
            format_count(run.rank.words),
        ]
        for index, run in enumerate(runs)
    ]
    header = [
        "run and output layer",
        "rank",
        "upper bound",
        "last value above",
        "first value below",
        "tokens",
        "words",
    ]
    notes = []
    if any(run.rank.is_full for run in runs):
        notes.append(
            "For a rank with ≥, the number of tokens or of words limits the measured rank: the "
            "rank may be larger on more tokens."
        )
    return element(
        "section",
        element("h2", "Rank of the log-probabilities"),
        element(
            "figure",
            run_keys((index, run.name) for index, run in enumerate(runs)),
            plot,
            element("figcaption", caption),
        ),
        table("Numerical rank of the log-probabilities", header, rows),
        *[element("p", note, class_="note") for note in notes],
        class_="results",
    )


def _draw(figure: Figure, runs: Sequence[RunAnalysis]) -> None:
    axes = figure.subplots()
    axes.axhline(runs[0].rank.tolerance, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    for index, run in enumerate(runs):
        values = run.rank.singular_values / run.rank.singular_values[0]
        values = np.maximum(values, _LOWEST)
        places = np.arange(1, len(values) + 1)
        color = series_color(index)
        # Models of one width have nearly equal values: thin lines above thick ones keep all
        # visible.
        axes.plot(places, values, color=color, linewidth=max(1.2, 4.2 - 1.5 * index))
        axes.plot(
            run.rank.rank,
            values[run.rank.rank - 1],
            color=color,
            marker=series_marker(index),
            markersize=max(5, 10 - 2.5 * index),
            markeredgecolor=PAPER,
            markeredgewidth=0.8,
            clip_on=False,
        )
    axes.set_yscale("log")
    axes.set_ylim(_LOWEST / 3, 3)
    axes.set_xlim(0, max(len(run.rank.singular_values) for run in runs) * 1.02)
    axes.yaxis.set_major_locator(LogLocator(numticks=7))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.set_xlabel("singular value number")
    axes.set_ylabel("relative to the largest")


def argmaxable_section(runs: Sequence[RunAnalysis]) -> ElementTree.Element:
    """Builds the section on the words that can, or cannot, be the most probable word."""
    rows: list[list[ElementTree.Element | str]] = []
    for index, run in enumerate(runs):
        counts = (len(run.words), *run.argmaxable.counts().values())
        rows.append([run_name(index, run.name), *map(format_count, counts)])
    bounds = {run.argmaxable.bound for run in runs if run.argmaxable.bound is not None}
    searched = (
        f" The search covers hidden states with components from −{max(bounds):g} to "
        f"{max(bounds):g}. It first tries the direction of each word, then linear programs. For "
        'words under "never", no hidden state gives a lead over all other words of more than '
        f"{np.format_float_positional(runs[0].argmaxable.min_lead)} nats."
        if bounds
        else ""
    )
    parts = [
        element("h2", "Words that can be the most probable"),
        element(
            "p",
            "A word can be the most probable one at some position of the text, only at another "
            "hidden state (elsewhere), or never. Greedy decoding cannot write a word that is never "
            "the most probable one." + searched,
            class_="note",
        ),
        table(
            "Number of words that can be the most probable one",
            ["run", "words", "in the text", "elsewhere", "never", "undecided"],
            rows,
        ),
    ]
    if any(run.argmaxable.counts()["undecided"] for run in runs):
        parts.append(
            element(
                "p",
                "For undecided words, the search found neither a hidden state nor a proof that "
                "there is none. Proofs need SciPy, and an output layer that is a softmax of inner "
                "products.",
                class_="note",
            )
        )
    for run in runs:
        never = run.never_chosen
        if never:
            more = len(never) - _MOST_WORDS
            text = f" · and {more:,} more" if more > 0 else ""
            parts.append(
                element(
                    "details",
                    element("summary", "Words that ", element("bdi", run.name), " never chooses"),
                    element("p", words(never[:_MOST_WORDS]), text),
                )
            )
    return element("section", *parts, class_="results")
