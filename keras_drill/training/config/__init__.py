"""Options of a run, their defaults, and the files they are kept in."""

from keras_drill.training.config.run_config import RunConfig, load_config, recipe_names, recipe_text

__all__ = ["RunConfig", "load_config", "recipe_names", "recipe_text"]
