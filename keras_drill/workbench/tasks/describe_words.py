"""Descriptions of words, for output layers that compute labels from descriptions."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_drill.data import read_word_vectors
from keras_drill.data.atomic import replaced_file
from keras_drill.models import TextEncoder
from keras_drill.workbench.tasks.config.head_sections import HeadConfig
from keras_drill.workbench.tasks.errors import ConfigError, RunError

DESCRIPTIONS = "descriptions.npy"
_ENCODER = "encoder:"


def describe_words(source: str, words: Sequence[str]) -> np.ndarray:
    """Computes descriptions of words: vectors that do not come from the training text.

    Args:
        source: Option `head.descriptions`: a file of word vectors, or "encoder:" and a preset or a
            folder of keras-hub.
        words: V words.

    Returns:
        `[V, f]` float32, zeros for words without description. Each vector is scaled to mean 0 and
        variance 1 by itself, so that it does not depend on other words.
    """
    if source in ("", _ENCODER):
        raise ConfigError(
            "option head.descriptions must be a file of word vectors, or 'encoder:' followed by a "
            "preset or a folder of keras-hub, such as 'encoder:bert_small_en_uncased', with "
            f"head.kind = 'described'. Received: {source!r}"
        )
    try:
        if source.startswith(_ENCODER):
            vectors = _embed(TextEncoder.from_preset(source.removeprefix(_ENCODER)), words)
        else:
            vectors, known = read_word_vectors(source, words)
            print(f"{source} has vectors for {known.sum():,} of the {len(words):,} words")
            if not known.any():
                raise RunError(
                    "option head.descriptions must be a file with vectors of words of the "
                    f"vocabulary. Received: {source}, which has none of these words"
                )
    except (ImportError, OSError, ValueError) as error:
        raise RunError(f"head.descriptions {source}: {error}") from error
    vectors = vectors - vectors.mean(axis=1, keepdims=True)
    return vectors / np.maximum(vectors.std(axis=1, keepdims=True), 1e-6)


def described_in(head: HeadConfig) -> Path | None:
    """Returns the local file or folder of `head.descriptions`; `None` if there is none."""
    if head.kind != "described" or not head.descriptions:
        return None
    path = Path(head.descriptions.removeprefix(_ENCODER))
    return path if path.exists() else None


def _embed(encoder: TextEncoder, words: Sequence[str]) -> np.ndarray:
    shown = sys.stderr.isatty()

    def report_progress(done: int, of: int) -> None:
        end = "\n" if done == of else ""
        print(f"\rdescribing words: {done:,} of {of:,}", end=end, file=sys.stderr, flush=True)

    return encoder.embed(words, report_progress if shown else None)


def save_descriptions(folder: Path, descriptions: np.ndarray | None) -> None:
    """Writes the file that `load_descriptions` reads, unless `descriptions` is `None`."""
    if descriptions is not None:
        with replaced_file(folder / DESCRIPTIONS) as beside:
            np.save(beside, descriptions)


def load_descriptions(folder: Path, words: Sequence[str]) -> np.ndarray | None:
    """Loads the descriptions of a run's words; `None` if the run has none."""
    file = folder / DESCRIPTIONS
    if not file.exists():
        return None
    try:
        descriptions = np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise RunError(
            f"{file} is damaged ({error}); remove the file, and training computes it again"
        ) from error
    if descriptions.ndim != 2 or len(descriptions) != len(words):
        raise RunError(
            f"{file} must have one row for each of the {len(words):,} words of the run; remove the "
            f"file, and training computes it again. Received: shape {descriptions.shape}"
        )
    return descriptions
