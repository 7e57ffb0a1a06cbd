"""Preprocessing steps of a run's text before tokenization."""

from keras_drill.data import (
    Lowercase,
    MosesTokenization,
    PreprocessedTokenizer,
    Preprocessing,
    Tokenizer,
    UnicodeNormalization,
)
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig


def make_steps(options: PairsConfig, language: str) -> tuple[Preprocessing, ...]:
    """Makes the preprocessing steps of the sources or of the targets.

    Args:
        options: Section `[data]`.
        language: Language for Moses tokenization, used only if `options.moses` is not empty.
    """
    steps: list[Preprocessing] = []
    if options.unicode_normalization != "none":
        steps.append(UnicodeNormalization(options.unicode_normalization))
    if options.lowercase:
        steps.append(Lowercase())
    if options.moses:
        # Unescaped, so that pieces are learned from the original characters.
        steps.append(MosesTokenization(language, escape=False, symbols=options.read_symbols))
    return tuple(steps)


def with_steps(steps: tuple[Preprocessing, ...], tokenizer: Tokenizer) -> Tokenizer:
    """Returns a tokenizer that first applies the steps; without steps, `tokenizer` itself."""
    return PreprocessedTokenizer(steps, tokenizer) if steps else tokenizer
