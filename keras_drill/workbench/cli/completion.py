"""Completion of command lines in a shell, by argcomplete."""

import os
from collections.abc import Callable
from typing import Any

from keras_drill.workbench.tasks.load_config import recipe_names


def complete(make_parser: Callable[[], Any]) -> None:
    """Prints completions and ends the process, if a shell asks for completions.

    The shell asks by environment variables. It must have evaluated the output of
    `register-python-argcomplete keras-drill` before.

    Args:
        make_parser: Function that returns the main parser, and the parsers of the commands by name.

    Source: https://github.com/kislyuk/argcomplete
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete  # installed by the extra `completion`

    parser, commands = make_parser()
    files = argcomplete.completers.FilesCompleter()

    def recipes_and_files(prefix: str, **others: Any) -> list[str]:
        return [*recipe_names(), *files(prefix, **others)]

    for name in ("train", "recipes"):
        commands[name].recipe.completer = recipes_and_files
    argcomplete.autocomplete(parser)
