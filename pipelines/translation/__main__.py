"""Runs the pipeline for translation models.

python -m pipelines.translation --data corpus/ --serve-as NAME
"""

import sys

# First, so that TensorFlow is imported when a pipeline begins, without its messages.
import keras_drill_command  # noqa: F401
from pipelines.command_line import main

if __name__ == "__main__":
    sys.exit(main("translation", recipe="small-translation-drill"))
