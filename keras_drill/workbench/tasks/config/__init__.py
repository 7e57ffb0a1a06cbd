"""Options of a run, their defaults, and how they are written."""

from keras_drill.workbench.tasks.config.run_config import RunConfig

__all__ = ["RunConfig"]
