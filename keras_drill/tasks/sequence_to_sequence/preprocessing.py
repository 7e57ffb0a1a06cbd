"""What is done to the text of a run before it is cut into words."""

from keras_drill.data import (
    Lowercase,
    MosesTokenization,
    PreprocessedTokenizer,
    Preprocessing,
    Tokenizer,
    UnicodeNormalization,
)
from keras_drill.tasks.sequence_to_sequence.config import PairsConfig


def make_steps(options: PairsConfig, language: str) -> tuple[Preprocessing, ...]:
    """The steps before the tokenizer of one side.

    Args:
        options: The options.
        language: Its language, where `options.moses` says one.
    """
    steps: list[Preprocessing] = []
    if options.unicode_normalization != "none":
        steps.append(UnicodeNormalization(options.unicode_normalization))
    if _has_lowercase_step(options):
        steps.append(Lowercase())
    if options.moses:
        symbols = symbols_of(options)
        # Unescaped, so that pieces are those of what is written.
        steps.append(MosesTokenization(language, escape=False, symbols=symbols))
    return tuple(steps)


def symbols_of(options: PairsConfig) -> tuple[str, ...]:
    """The words that are never cut, as they are after the steps."""
    lowercase = _has_lowercase_step(options)
    return tuple(symbol.lower() if lowercase else symbol for symbol in options.symbols)


def _has_lowercase_step(options: PairsConfig) -> bool:
    return options.lowercase and not options.learns_sentence_pieces


def with_steps(steps: tuple[Preprocessing, ...], tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer behind the steps; itself where there are none."""
    return PreprocessedTokenizer(steps, tokenizer) if steps else tokenizer
