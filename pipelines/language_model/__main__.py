"""`python -m pipelines.language_model --data corpus/ --serve-as NAME`."""

import sys

from pipelines.command_line import main

if __name__ == "__main__":
    sys.exit(main("language-model", recipe="small-drill"))
