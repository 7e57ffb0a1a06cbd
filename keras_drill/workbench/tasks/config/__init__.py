"""Options of a run, their defaults, and their file format."""

from keras_drill.workbench.tasks.config.run_config import RunConfig

__all__ = ["RunConfig"]
