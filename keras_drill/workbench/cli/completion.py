"""Completion of commands in a shell, by argcomplete."""

import os
from collections.abc import Callable
from typing import Any

from keras_drill.workbench.tasks.load_config import recipe_names


def complete(make_parser: Callable[[], Any]) -> None:
    """Completes a command line and ends the process, if a shell has asked for a completion.

    A shell asks through environment variables, after it has evaluated the output of
    `register-python-argcomplete keras-drill`.

    Args:
        make_parser: Function that makes the main parser and the parsers of the commands by name.

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
