"""Output layers for neural language generation, on Keras 3."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Keras finds a saved layer's class only once its module is imported. Only the command imports what
# it needs when it needs it, and so answers `--help` and mistakes at once.
if TYPE_CHECKING or "keras_drill_command" not in sys.modules:
    from keras_drill.api import *  # noqa: F403
    from keras_drill.api import __all__ as __all__
else:

    def __getattr__(name: str) -> Any:
        return getattr(importlib.import_module("keras_drill.api"), name)
