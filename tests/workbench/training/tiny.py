"""A corpus and options so small that a training takes seconds."""

from pathlib import Path

import numpy as np

from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig


def write_corpus(folder: Path) -> Path:
    """Writes sentences of a toy language with train, valid and test text."""
    random = np.random.default_rng(5)
    subjects, verbs = ["the cat", "a dog", "the old bird"], ["sees", "hears", "follows"]
    folder.mkdir(parents=True, exist_ok=True)
    for split, lines in (("train", 101), ("valid", 23), ("test", 19)):
        text = "".join(
            f"{random.choice(subjects)} {random.choice(verbs)} {random.choice(subjects)} .\n"
            for _ in range(lines)
        )
        (folder / f"{split}.txt").write_text(text)
    return folder


TINY = {
    "data.batch_size": 3,
    "data.sequence_length": 11,
    "backbone.embedding_dim": 7,
    "backbone.units": 5,
    "backbone.num_layers": 1,
    "head.tile_size": 37,  # derived from memory it is some thousand tokens where words are few
    "optimizer.kind": "adam",
    "optimizer.learning_rate": 0.01,
    "optimizer.scale_with_length": False,
    "training.epochs": 3,
    "training.checkpoint_every": 0,
    "training.deterministic": False,
    "training.tensorboard": False,
    "samples.prompts": [],
    "samples.max_tokens": 3,
}


def tiny_config(data: Path, **changes) -> LanguageModelConfig:
    """Options of a tiny run; `head_kind="drill"` stands for the option `head.kind`."""
    named = {name.replace("_", ".", 1): value for name, value in changes.items()}
    return LanguageModelConfig().replace({**TINY, "data.path": str(data), **named})
