"""Completion of commands in a shell, by argcomplete."""

import os
from collections.abc import Callable
from typing import Any

from keras_drill.workbench.tasks.load_config import recipe_names


def complete(make_parser: Callable[[], Any]) -> None:
    """Completes the words of a command line if a shell asks for it, and ends the process then.

    A shell asks by environment variables, once it has evaluated the output of
    `register-python-argcomplete keras-drill`.

    Args:
        make_parser: Makes the parser and those of the commands.

    Source: https://github.com/kislyuk/argcomplete
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete  # from the extra `completion`, as the command that registers it

    parser, commands = make_parser()
    files = argcomplete.completers.FilesCompleter()

    def recipes_and_files(prefix: str, **others: Any) -> list[str]:
        return [*recipe_names(), *files(prefix, **others)]

    for name in ("train", "recipes"):
        recipe = next(one for one in commands[name]._actions if one.dest == "recipe")
        recipe.completer = recipes_and_files
    argcomplete.autocomplete(parser)
