# PYTHON_ARGCOMPLETE_OK
"""Starts `keras-drill`.

A module of its own, beside the package, because importing the package imports all of its layers,
and Keras and TensorFlow with them; where this one is imported first, it leaves that to the command.
"""

import sys


def main() -> int:
    """Runs the command line of the process, and returns its exit status."""
    from keras_drill.workbench.cli.main import main

    return main()


if __name__ == "__main__":
    sys.modules["keras_drill_command"] = sys.modules["__main__"]
    sys.exit(main())
