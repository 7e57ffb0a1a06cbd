"""Which figures of several runs on one text can be compared, and why others cannot."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import best_in_bold, element, running_text, table
from keras_drill.workbench.report.page.formatting import format_perplexity, text_table

_LONGEST = 40  # characters of an option's value that is shown
_NOT_CHARGED = (
    "A model that writes <unk> for a word is not charged for its spelling, and a model that reads "
    "lower-cased text is not charged for capitals."
)
DEFINITIONS = (
    "Bits per byte: minus the logarithm to base 2 of the probability of all targets, the end of "
    "each line among them, over the bytes of the text as it was written: UTF-8, with one byte for "
    "the end of each line; of pairs, the bytes of the targets. Unknown words: the share of the "
    "targets that are words for which the model has <unk>."
)


@dataclasses.dataclass(frozen=True)
class PerplexityBasis:
    """What a perplexity depends on beside the model, and so what has to agree to compare two.

    Args:
        text: Digest of the lines as they were written; of pairs, of both sides.
        origin: The text in words for people.
        tokenizer: Class and configuration of the tokenizer, preprocessing included; of pairs, that
            of the targets.
        tokens: The vocabulary; of pairs, that of the targets.
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
    """Why perplexities cannot be compared: what differs, a clause each; empty where they can.

    Args:
        bases: By the name of the run.

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
    """Why two runs cannot be compared by word frequency, as a clause; `None` where they can.

    Args:
        first: What the perplexity of the first run depends on.
        other: That of the other.
        names: Their names.
        counts: How often the words of the first run occur in its training text.
    """
    found = differences(dict(zip(names, (first, other), strict=True)))
    if not found and counts is None:
        found = [f"nothing tells how often the words of {names[0]} occur in its training text"]
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
    """Figures of a run that depend less on its words than its perplexity does.

    Args:
        bits_per_byte: See `DEFINITIONS`.
        unknown: Share of the targets that are unknown words.
        known_perplexity: Perplexity of the targets that all runs know; `None` where they do not
            cut the text alike, or have no such target.
    """

    bits_per_byte: float
    unknown: float
    known_perplexity: float | None = None


@dataclasses.dataclass(frozen=True)
class Comparability:
    """Which figures of several runs on one text can be compared.

    Args:
        name: The text: `"test"`.
        runs: Names of the runs.
        differences: What differs between the runs, see `differences`; empty where perplexities can
            be compared.
        is_same_text: Whether the text is the same, so that scores of what was written can be
            compared.
        figures: By run, what may be compared instead; empty where there is nothing.
        is_spelled_alike: Whether the targets of all runs spell the same text, so that bits per byte
            can be compared.
        known_targets: How many targets all runs know.
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
        """Explanations of the figures, and which of the figures cannot be compared either."""
        if not self.is_same_text:
            return ["Nothing else can be compared either: evaluate the runs on one text."]
        notes = [DEFINITIONS]
        if not self.is_spelled_alike:
            notes.append(
                "Bits per byte cannot be compared here: the words of the runs do not spell the "
                f"same text. {_NOT_CHARGED}"
            )
        if self.known_targets:
            notes.append(
                f"Perplexity of known words: of the {self.known_targets:,} targets that the "
                "vocabularies of all runs have; it can be compared."
            )
        return notes

    def columns(self) -> dict[str, tuple[list[str], list[float | None]]]:
        """Of the table of figures by name: cells, and the numbers where they can be compared."""
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
    """What cannot be compared and why, and the figures that can.

    Args:
        compared: By text, those of which perplexities cannot be compared.
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
                    f"Figures of the {each.name} text",
                    list(columns),
                    [list(row) for row in zip(*columns.values(), strict=True)],
                )
            )
        parts.append(element("p", " ".join(each.notes), class_="note"))
    return element("section", element("h2", "What can be compared"), *parts)


def unranked(compared: Sequence[Comparability], name: str) -> Comparability | None:
    """What is known of a text whose perplexities cannot be compared."""
    return next((each for each in compared if each.name == name and each.differences), None)
