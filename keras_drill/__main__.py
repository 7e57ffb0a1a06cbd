"""Runs the command `keras-drill` as `python -m keras_drill`; imports the whole package first."""

import sys

from keras_drill.workbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
