"""Pairs and options so small that a training takes seconds."""

from pathlib import Path

import numpy as np

from keras_drill.workbench.tasks.translation.config import TranslationConfig

_WORDS = {
    "der": "the", "ein": "a", "Hund": "dog", "Vogel": "bird", "alte": "old", "Mann": "man",
    "sieht": "sees", "hört": "hears", "ruft": "calls",
}  # fmt: skip


def write_pairs(folder: Path) -> Path:
    """Writes sentences of a toy language and their translations, train, valid and test."""
    random = np.random.default_rng(5)
    subjects, verbs = ["der Hund", "ein Vogel", "der alte Mann"], ["sieht", "hört", "ruft"]
    folder.mkdir(parents=True, exist_ok=True)
    for split, lines in (("train", 101), ("valid", 13), ("test", 11)):
        sources = [
            f"{random.choice(subjects)} {random.choice(verbs)} {random.choice(subjects)} ."
            for _ in range(lines)
        ]
        targets = [" ".join(_WORDS.get(word, word) for word in line.split()) for line in sources]
        (folder / f"{split}.de").write_text("".join(f"{line}\n" for line in sources))
        (folder / f"{split}.en").write_text("".join(f"{line}\n" for line in targets))
    return folder


TINY = {
    "data.vocabulary_size": 60,
    "data.batch_tokens": 128,
    "backbone.embedding_dim": 14,
    "backbone.units": 11,
    "backbone.num_heads": 2,
    "backbone.feed_forward_dim": 13,
    "backbone.dropout": 0.1,
    "head.tile_size": 37,
    "optimizer.learning_rate": 0.01,
    "training.epochs": 2,
    "training.checkpoint_every": 0,
    "training.deterministic": False,
    "training.tensorboard": False,
    "decoding.num_beams": 2,
    "decoding.max_tokens": 17,
}


def tiny_pairs_config(data: Path, **changes) -> TranslationConfig:
    """Options of a tiny run; `head_kind="drill"` stands for the option `head.kind`."""
    named = {name.replace("_", ".", 1): value for name, value in changes.items()}
    return TranslationConfig().replace({**TINY, "data.path": str(data), **named})
