"""Preprocessing steps before the tokenizers of a run."""

from keras_drill.data import (
    Lowercase,
    MosesTokenization,
    PreprocessedTokenizer,
    Preprocessing,
    Tokenizer,
    UnicodeNormalization,
)
from keras_drill.workbench.tasks.sequence_to_sequence.config import PairsConfig


def make_steps(options: PairsConfig, language: str) -> tuple[Preprocessing, ...]:
    """Makes the steps before the tokenizer of one side.

    Args:
        options: The options.
        language: Language of the side, if `options.moses` has languages.
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
    """Combines steps and tokenizer. Without steps, returns the tokenizer."""
    return PreprocessedTokenizer(steps, tokenizer) if steps else tokenizer
