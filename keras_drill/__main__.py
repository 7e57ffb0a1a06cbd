"""`python -m keras_drill` is `keras-drill`."""

import sys

from keras_drill.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
