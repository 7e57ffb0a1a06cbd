"""Data on the senses of a model, or on induced senses, for the terminal and the HTML page."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_drill.ready_made import KernelizedBayesianSoftmax
from keras_drill.scores import KerBSKernel
from keras_drill.workbench.analysis import WordSenses, nearest_words, project_to_plane
from keras_drill.workbench.report import SenseStudy, StudiedWord
from keras_drill.workbench.report.page.formatting import text_table

_THETAS = (-2.0, 0.0, 2.0)  # kernels plotted for every model

Example = tuple[str, str, float]


def study_word(
    head: KernelizedBayesianSoftmax,
    vocabulary: Sequence[str],
    senses: WordSenses,
    examples: Sequence[Sequence[Example]],
    nearest: int,
) -> StudiedWord:
    """Collects the data of one word for the page.

    Args:
        head: The output layer.
        vocabulary: The words of the output layer.
        senses: At least three occurrences of the word, with the probabilities of its senses.
        examples: For each sense its examples: the text before, the text after, and the probability
            of the sense.
        nearest: Number of nearest words to find for each sense.
    """
    labels, sense_to_word = _array(head.encoded_labels()), _array(head.allocation.sense_to_word)
    points, variance = project_to_plane(senses.hidden)
    return StudiedWord(
        word=vocabulary[senses.word],
        senses=senses.senses,
        information=senses.information,
        shares=senses.shares,
        theta=None if head.theta is None else _array(head.theta)[senses.senses],
        nearest=tuple(
            tuple(
                vocabulary[word] for word, _ in nearest_words(labels, sense_to_word, sense, nearest)
            )
            for sense in senses.senses
        ),
        contexts=tuple(map(tuple, examples)),
        points=points,
        variance=variance,
        sense=senses.most_probable,
    )


def kernels(head: KernelizedBayesianSoftmax) -> dict:
    """Computes the data of the page's plot of kernels.

    Returns:
        The kernel parameters θ of all senses, angles in degrees, and the kernel at these angles for
        some θ. For output layers without θ, the parameters are `None` and there are no kernels.
    """
    angles = np.linspace(0, 180, 91)
    if not isinstance(head.score, KerBSKernel):  # the inner product has no θ
        return {"theta": None, "angles": angles, "kernels": {}}
    theta = _array(head.theta)
    drawn = sorted({*_THETAS, float(theta.min()), float(theta.max())})
    cosines = np.cos(np.radians(angles)).astype("float32")
    shapes = {value: _array(head.score.value(np.float32(value), cosines)) for value in drawn}
    return {"theta": theta, "angles": angles, "kernels": shapes}


def _array(tensor) -> np.ndarray:
    return keras.ops.convert_to_numpy(tensor)


def study_tables(study: SenseStudy) -> str:
    """Formats the tables and contexts of the page as text, for the terminal."""
    rows: list[tuple[str, ...]] = [("senses", "words", "of all", "the most frequent of them")]
    for senses, (number, examples) in study.by_senses.items():
        share = f"{100 * number / study.vocabulary_size:.1f} %"
        rows.append((str(senses), str(number), share, " ".join(examples)))
    parts = [
        f"{study.mean_senses:.2f} senses per word; occurrences are from {study.text}",
        _right_but_last(rows),
    ]
    for word in study.words:
        rows = [("sense", "id", "share", "theta", "nearest words")]
        lines = []
        for place, id in enumerate(word.senses):
            theta = "-" if word.theta is None else f"{word.theta[place]:.3f}"
            share = f"{100 * word.shares[place]:.0f} %"
            rows.append((str(place + 1), str(id), share, theta, " ".join(word.nearest[place])))
            lines += [
                f"  sense {place + 1}  {probability:.2f}  {before} [{word.word}] {after}"
                for before, after, probability in word.contexts[place]
            ]
        heading = f"{word.word}: {times(word.occurrences)}"
        if not word.distinguishes_senses:
            heading += f"\n{word.verdict}"
        parts.append("\n".join([heading, _right_but_last(rows), *lines]))
    return "\n\n".join(parts)


def _right_but_last(rows: Sequence[Sequence[str]]) -> str:
    """Formats a table with right-aligned columns, except for a left-aligned last column."""
    *columns, last = zip(*rows, strict=True)
    aligned = text_table(list(zip(*columns, strict=True)), left=0).splitlines()
    return "\n".join(f"{line}  {text}" for line, text in zip(aligned, last, strict=True))


def times(number: int) -> str:
    """Returns a count as "once" or "n times".

    >>> times(1), times(3)
    ('once', '3 times')
    """
    return "once" if number == 1 else f"{number} times"
