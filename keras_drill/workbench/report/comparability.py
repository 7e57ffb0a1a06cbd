"""Decides which metrics of several runs on one text can be compared, and explains the reasons."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import best_in_bold, element, running_text, table
from keras_drill.workbench.report.page.formatting import format_perplexity, text_table

_LONGEST = 40  # maximum number of characters of an option's value
_NOT_CHARGED = (
    "Bits per byte favour models that write <unk>, which does not predict a word's spelling, and "
    "models of lower-cased text, which do not predict capitals."
)
DEFINITIONS = (
    "Bits per byte: the negative base-2 logarithm of the probability of all targets, divided by "
    "the number of bytes of the original text. Targets include the end of each line. Bytes are "
    "those of UTF-8 with one byte for each line end, for pairs those of the target texts. Unknown "
    "words: the share of the targets that the model replaces by <unk>."
)


@dataclasses.dataclass(frozen=True)
class PerplexityBasis:
    """Text, tokenizer and vocabulary of a perplexity.

    The perplexities of two models can be compared only if all three are equal.

    Args:
        text: Digest of the original lines; for pairs, of both sides.
        origin: Description of the text for the user.
        tokenizer: Class and configuration of the tokenizer, including preprocessing; for pairs, of
            the targets' tokenizer.
        tokens: The vocabulary; for pairs, that of the targets.
    """

    text: str
    origin: str
    tokenizer: Mapping[str, Any]
    tokens: frozenset[str]

    @property
    def tokenizer_key(self) -> str:
        """Key that is equal for tokenizers with the same class and options."""
        return json.dumps(self.tokenizer, sort_keys=True, default=str)


def differences(bases: Mapping[str, PerplexityBasis]) -> list[str]:
    """Lists the differences that make perplexities incomparable, as clauses.

    Args:
        bases: The basis of each run's perplexity, by the name of the run.

    Returns:
        The differences; an empty list if the perplexities can be compared.

    Example:

    >>> words = {"class": "WordTokenizer"}
    >>> a = PerplexityBasis("0", "a.txt", words, frozenset(["<unk>", "<eos>", "the"]))
    >>> b = dataclasses.replace(a, tokens=frozenset(["<unk>", "<eos>"]))
    >>> differences({"tied": a, "drill": a}), differences({"tied": a, "drill": b})
    ([], ['the vocabularies differ (tied: 3 words; drill: 2 words)'])
    """
    parts: list[tuple[str, Callable[[PerplexityBasis], Any], Callable[[PerplexityBasis], str]]] = [
        ("texts", lambda basis: basis.text, lambda basis: basis.origin),
        ("tokenizers", lambda basis: basis.tokenizer_key, _describe_tokenizer),
        (
            "vocabularies",
            lambda basis: basis.tokens,
            lambda basis: f"{len(basis.tokens):,} words",
        ),
    ]
    found = []
    for what, key, describe in parts:
        groups: dict[Any, list[str]] = {}
        for name, basis in bases.items():
            groups.setdefault(key(basis), []).append(name)
        if len(groups) > 1:
            told: dict[str, str] = {}
            for names in groups.values():
                described = describe(bases[names[0]])
                others = "others: " if described in told.values() else ""
                told[", ".join(names)] = f"{others}{described}"
            each = "; ".join(f"{names}: {described}" for names, described in told.items())
            found.append(f"the {what} differ ({each})")
    return found


def frequency_obstacle(
    first: PerplexityBasis,
    other: PerplexityBasis,
    names: tuple[str, str],
    counts: Sequence[int] | None,
) -> str | None:
    """Returns the reason why two runs cannot be compared by word frequency, or `None`.

    Args:
        first: Basis of the first run's perplexity.
        other: Basis of the other run's perplexity.
        names: Names of the two runs.
        counts: Counts of the first run's words in its training text; `None` if unknown.
    """
    found = differences(dict(zip(names, (first, other), strict=True)))
    if not found and counts is None:
        found = [f"the word counts of the training text of {names[0]} are unknown"]
    return "; ".join(found) or None


def _describe_tokenizer(basis: PerplexityBasis) -> str:
    def shown(value: Any) -> str:
        text = repr(value)
        if len(text) <= _LONGEST:
            return text
        digest = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode())
        return digest.hexdigest()[:8]

    options = {name: value for name, value in basis.tokenizer.items() if name != "class"}
    told = ", ".join(f"{name}={shown(value)}" for name, value in options.items())
    return f"{basis.tokenizer['class']}({told})"


@dataclasses.dataclass(frozen=True)
class ComparableFigures:
    """Metrics of a run that depend less on its vocabulary than the perplexity does.

    Args:
        bits_per_byte: See `DEFINITIONS`.
        unknown: Share of the targets that are unknown words.
        known_perplexity: Perplexity of the targets that are in the vocabularies of all runs; `None`
            if the runs tokenize the text differently, or if there is no such target.
    """

    bits_per_byte: float
    unknown: float
    known_perplexity: float | None = None


@dataclasses.dataclass(frozen=True)
class Comparability:
    """The metrics of several runs on one text that can be compared.

    Args:
        name: Name of the text, for example `"test"`.
        runs: Names of the runs.
        differences: Differences between the runs, see `differences`; empty if perplexities can be
            compared.
        is_same_text: Whether the text is the same, so that scores of generated text can be
            compared.
        figures: The metrics that can be compared instead, by run; empty if there are none.
        is_spelled_alike: Whether the targets of all runs, when decoded, are the same text, so that
            bits per byte can be compared.
        known_targets: Number of targets that are in the vocabularies of all runs.
    """

    name: str
    runs: Sequence[str]
    differences: Sequence[str] = ()
    is_same_text: bool = True
    figures: Mapping[str, ComparableFigures] = dataclasses.field(default_factory=dict)
    is_spelled_alike: bool = False
    known_targets: int = 0

    @property
    def reason(self) -> str:
        """Returns the reasons why perplexities cannot be compared, as a sentence."""
        kind = "validation" if self.name == "valid" else self.name
        return f"The {kind} perplexities cannot be compared: {'; '.join(self.differences)}."

    @property
    def notes(self) -> list[str]:
        """Explains the metrics, and names those that cannot be compared either."""
        if not self.is_same_text:
            return ["No other metric can be compared either: evaluate the runs on the same text."]
        notes = [DEFINITIONS]
        if not self.is_spelled_alike:
            notes.append(
                "Bits per byte cannot be compared here, because the targets of the runs do not "
                f"spell the same text. {_NOT_CHARGED}"
            )
        if self.known_targets:
            notes.append(
                f"Perplexity of known words: the perplexity on the {self.known_targets:,} targets "
                "that are in the vocabularies of all runs. It can be compared."
            )
        return notes

    def columns(self) -> dict[str, tuple[list[str], list[float | None]]]:
        """Returns the columns of the table of metrics, by name.

        Returns:
            For each column, its cells, and its numbers; `None` for numbers that cannot be compared.
        """
        each = list(self.figures.values())
        bits = [one.bits_per_byte for one in each]
        known = [one.known_perplexity for one in each]
        columns: dict[str, tuple[list[str], list[float | None]]] = {
            "bits per byte": (
                [f"{value:.4f}" for value in bits],
                [value if self.is_spelled_alike else None for value in bits],
            ),
            "unknown words": ([f"{100 * one.unknown:.2f} %" for one in each], [None] * len(each)),
        }
        if self.known_targets:
            columns["perplexity of known words"] = (list(map(format_perplexity, known)), known)
        return columns

    def __str__(self) -> str:
        lines = [self.reason]
        if self.figures:
            columns = self.columns()
            cells = zip(self.figures, *(cells for cells, _ in columns.values()), strict=True)
            lines.append(text_table([("run", *columns), *cells]))
        return "\n".join([*lines, *self.notes])


def comparability_section(compared: Iterable[Comparability]) -> ElementTree.Element:
    """Builds the section that says which metrics can be compared, and why others cannot.

    Args:
        compared: The texts whose perplexities cannot be compared.
    """
    parts = []
    for each in compared:
        parts.append(element("p", *running_text(each.reason)))
        if each.figures:
            columns: dict[str, list[ElementTree.Element | str]] = {
                "run": [element("bdi", name) for name in each.figures]
            }
            for name, (cells, values) in each.columns().items():
                columns[name] = best_in_bold(values, cells, min)
            parts.append(
                table(
                    f"Metrics of the {each.name} text",
                    list(columns),
                    [list(row) for row in zip(*columns.values(), strict=True)],
                )
            )
        parts.append(element("p", " ".join(each.notes), class_="note"))
    return element("section", element("h2", "What can be compared"), *parts)


def unranked(compared: Sequence[Comparability], name: str) -> Comparability | None:
    """Returns the entry of a text if its perplexities cannot be compared, else `None`."""
    return next((each for each in compared if each.name == name and each.differences), None)
