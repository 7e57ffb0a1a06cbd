"""The argument parser of the command line."""

import argparse
import sys


class ArgumentParser(argparse.ArgumentParser):
    """An `argparse` parser whose errors are one message, and which expands no abbreviations."""

    def __init__(self, **kwargs):
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs
        )

    def error(self, message: str):
        print(f"keras-drill: error: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)
