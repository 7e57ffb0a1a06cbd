"""The settings of a training run: all that determines its result, except the examples."""

from typing import Any

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.describe_words import described_in
from keras_drill.workbench.training.run_folder import RunFolder
from pipelines.components.fingerprint import fingerprint


def training_settings(config: RunConfig) -> dict[str, Any]:
    """Returns the options and the fingerprints of the files they name, JSON-serializable.

    Args:
        config: The options. `data.path` is ignored.
    """
    settings: dict[str, Any] = {"config": config.replace({"data.path": ""}).to_mapping()}
    descriptions = described_in(config.head)
    if descriptions is not None:
        settings["descriptions"] = fingerprint(descriptions)
    if config.training.start_from:
        run = RunFolder(config.training.start_from)
        words = (run.path / name for name in config.word_files)
        settings["start_from"] = fingerprint(run.model_file, run.averaged_model_file, *words)
    return settings
