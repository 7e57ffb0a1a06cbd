"""`python -m pipelines.translation --data corpus/ --serve-as NAME`."""

import sys

from pipelines.command_line import main

if __name__ == "__main__":
    sys.exit(main("translation", recipe="small-translation-drill"))
