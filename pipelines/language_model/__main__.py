"""Runs the pipeline for language models.

python -m pipelines.language_model --data corpus/ --serve-as NAME
"""

import sys

# First, so that TensorFlow is imported when a pipeline begins, without its messages.
import keras_drill_command  # noqa: F401
from pipelines.command_line import main

if __name__ == "__main__":
    sys.exit(main("language-model", recipe="small-drill"))
