"""`python -m keras_drill` is `keras-drill`, after importing all that the package has."""

import sys

from keras_drill.workbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
