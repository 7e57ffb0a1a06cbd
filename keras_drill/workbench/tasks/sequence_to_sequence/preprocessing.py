"""What is done to the text of a run before it is cut into words."""

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
    """The steps before the tokenizer of one side.

    Args:
        options: The options.
        language: Its language, where `options.moses` says one.
    """
    steps: list[Preprocessing] = []
    if options.unicode_normalization != "none":
        steps.append(UnicodeNormalization(options.unicode_normalization))
    if options.lowercase:
        steps.append(Lowercase())
    if options.moses:
        # Unescaped, so that pieces are those of what is written.
        steps.append(MosesTokenization(language, escape=False, symbols=options.read_symbols))
    return tuple(steps)


def with_steps(steps: tuple[Preprocessing, ...], tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer behind the steps; itself where there are none."""
    return PreprocessedTokenizer(steps, tokenizer) if steps else tokenizer
