"""Runs the pipeline for dialog models.

python -m pipelines.dialog --data corpus/ --serve-as NAME
"""

import sys

# First, so that TensorFlow is imported when a pipeline begins, without its messages.
import keras_drill_command  # noqa: F401
from pipelines.command_line import main

if __name__ == "__main__":
    sys.exit(main("dialog", recipe="small-dialog-drill"))
