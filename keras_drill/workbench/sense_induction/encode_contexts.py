"""Computes encoder states of many contexts, with a cache on disk."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from keras_drill.data.atomic import replaced_file
from keras_drill.models.text_encoder import TextEncoder
from keras_drill.workbench.sense_induction.word_contexts import WordContext

_CHUNK = 1024


def encode_contexts(
    encoder: TextEncoder,
    contexts: Sequence[WordContext],
    masked: bool = True,
    cache: str | os.PathLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Computes `encoder.states` of any number of contexts, with a cache on disk.

    Args:
        encoder: The encoder.
        contexts: N contexts.
        masked: Whether the word is masked, see `TextEncoder.states`.
        cache: Folder of the cache, with 1,024 contexts per file. States of the same encoder for the
            same contexts are read from the cache, so that an interrupted call can continue. `None`
            disables the cache.
        progress: Function that is called with the number of finished contexts, and with N.

    Returns:
        `[N, 2, width]` float32.
    """
    states = np.empty((len(contexts), 2, encoder.width), "float32")
    fingerprint = encoder.fingerprint if cache is not None else ""
    for start in range(0, len(contexts), _CHUNK):
        part = contexts[start : start + _CHUNK]
        file = None
        if cache is not None:
            content = repr((fingerprint, masked, [tuple(context) for context in part]))
            file = Path(cache, f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.npy")
        if file is not None and file.exists():
            states[start : start + len(part)] = np.load(file, allow_pickle=False)
        else:
            states[start : start + len(part)] = encoder.states(part, masked)
            if file is not None:
                with replaced_file(file) as beside:
                    np.save(beside, states[start : start + len(part)])
        if progress is not None:
            progress(start + len(part), len(contexts))
    return states
