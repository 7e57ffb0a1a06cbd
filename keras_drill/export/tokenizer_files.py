"""Tokenizers beside models whose inputs are words or ids."""

import json
from pathlib import Path

import keras

from keras_drill.data import SentencePieceTokenizer, Tokenizer, Vocabulary

Coder = tuple[Tokenizer, Vocabulary]


def check_sides(has_source: bool, target: Coder, source: Coder | None) -> dict[str, Coder]:
    """Returns the sides of a model by name. Raises `ValueError` if `source` does not fit it."""
    if has_source != (source is not None):
        raise ValueError(
            "`source` must be the tokenizer and the vocabulary of the sources for a model with a "
            f"source, else None. Received: {'source=None' if has_source else 'a source'} for a "
            f"model {'with' if has_source else 'without'} a source"
        )
    return {"target": target} if source is None else {"source": source, "target": target}


def save_tokenizer(tokenizer: Tokenizer, folder: Path, prefix: str) -> None:
    """Writes Keras' config of a tokenizer, and a SentencePiece model also as its own file."""
    config = json.dumps(keras.saving.serialize_keras_object(tokenizer), indent=2)
    (folder / f"{prefix}tokenizer.json").write_text(config + "\n", encoding="utf-8")
    if isinstance(tokenizer, SentencePieceTokenizer):
        tokenizer.save(folder / f"{prefix}tokenizer.model")
