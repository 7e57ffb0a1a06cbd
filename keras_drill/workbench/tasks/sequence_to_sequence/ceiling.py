"""Highest scores that a vocabulary allows: those of references after encoding and decoding."""

import dataclasses
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from keras_drill.export import Side
from keras_drill.metrics.text_scores import score_texts
from keras_drill.workbench.tasks.sequence_to_sequence.run_vocabulary import SideVocabulary

_ROWS = 4096
# Changes by tokenizers and preprocessing, each with a function that removes the change.
_CHANGES: dict[str, Callable[[str], str]] = {
    "in case": str.lower,
    "in how characters are written": lambda text: unicodedata.normalize("NFKC", text),
    "in white space": lambda text: "".join(text.split()),
}
_REACHED = 99.95  # is 100.0 to one place


@dataclasses.dataclass(frozen=True)
class Ceiling:
    """Scores of references that are encoded and decoded with a model's vocabulary.

    No model with this vocabulary can be expected to score higher, since encoding loses unknown
    words and, for example, case.

    Args:
        bleu: BLEU against the original references.
        chrf: chrF against the original references.
        exact_match: Percentage of references that do not change.
        unknown: Share of the references' tokens that are unknown.
        changes: For each kind of change, such as "in case", the share of the references that it
            affects.
    """

    bleu: float
    chrf: float
    exact_match: float
    unknown: float
    changes: Mapping[str, float]

    @classmethod
    def measure(
        cls, run_vocabulary: SideVocabulary, references: Sequence[str], scoring: Mapping[str, Any]
    ) -> "Ceiling":
        """Encodes and decodes references, and scores the result.

        Args:
            run_vocabulary: Tokenizer and vocabulary of the targets.
            references: The texts.
            scoring: Arguments of `keras_drill.metrics.score_texts`.
        """
        side = Side(run_vocabulary.tokenizer, run_vocabulary.vocabulary)
        decoded: list[str] = []
        tokens = unknown = 0
        for start in range(0, len(references), _ROWS):
            ids, lengths = side.encode(tf.constant(references[start : start + _ROWS], tf.string))
            decoded += [text.decode() for text in side.decode(ids).numpy()]
            tokens += int(tf.reduce_sum(lengths - 1))
            unknown += int(tf.math.count_nonzero(ids == run_vocabulary.vocabulary.unknown_id))
        scores = score_texts(decoded, references, **scoring)
        changes = {
            name: sum(map(_is_changed, decoded, references, [name] * len(decoded))) / len(decoded)
            for name in _CHANGES
            if not (name == "in case" and scoring.get("lowercase"))
        }
        return cls(
            scores.bleu,
            scores.chrf,
            scores.exact_match,
            unknown / max(tokens, 1),
            {name: share for name, share in changes.items() if share},
        )

    @property
    def is_reached(self) -> bool:
        """Whether a perfect model reaches 100 in all scores."""
        return min(self.bleu, self.chrf, self.exact_match) >= _REACHED

    def __str__(self) -> str:
        reasons = [f"{share:.1%} differ {name}" for name, share in self.changes.items()]
        if self.unknown:
            reasons.insert(0, f"{self.unknown:.1%} of their tokens are unknown")
        why = f": {', '.join(reasons)}".replace("%", " %") if reasons else ""
        return (
            f"after encoding and decoding, the references themselves have BLEU {self.bleu:.2f}, "
            f"chrF {self.chrf:.2f} and {self.exact_match:.1f} % exact matches{why}"
        )


def _is_changed(decoded: str, reference: str, change: str) -> bool:
    """Whether two texts differ by this change, and otherwise only by other known changes."""
    others = [blind for name, blind in _CHANGES.items() if name != change]
    for blind in others:
        decoded, reference = blind(decoded), blind(reference)
    blind = _CHANGES[change]
    return decoded != reference and blind(decoded) == blind(reference)
