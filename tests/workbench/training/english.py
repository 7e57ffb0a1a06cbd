"""English prose, and trainings on it that are killed again and again."""

from pathlib import Path

import numpy as np

from keras_drill.data.pydoc_topics import pydoc_topics
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from tests.workbench.training.tiny import tiny_config


def write_english(folder: Path, train_lines: int) -> Path:
    """Writes the beginnings of the texts that come with Python: train, valid and test."""
    pydoc_topics(folder)
    for split, number in {"train": train_lines, "valid": 9, "test": 9}.items():
        path = folder / f"{split}.txt"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:number]), encoding="utf-8")
    return folder


def english_config(folder: Path, train_lines: int = 150, **changes) -> LanguageModelConfig:
    """A training of 1,000 steps or so on prose, a checkpoint every second step."""
    options = {
        "data_batch_size": 4,
        "head_kind": "drill-kerbs",
        "head_dropout": 0.3,
        "senses_interval": 17,
        "senses_weighting": "usage",
        "optimizer_kind": "nt-asgd",
        "optimizer_learning_rate": 1.0,
        "optimizer_nonmonotone_interval": 1,
        "training_epochs": 6,
        "training_checkpoint_every": 2,
        "training_deterministic": True,
    }
    return tiny_config(write_english(folder, train_lines), **{**options, **changes})


def next_step_to_kill_at(steps: list[int], random: np.random.Generator) -> int:
    """Of a training with checkpoints of these steps: a few steps on."""
    return max(steps, default=0) + int(random.integers(1, 12))
