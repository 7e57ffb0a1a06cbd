"""Error messages for the command line, with names of options instead of Python arguments."""

import re
import sys
from typing import Any, TypeGuard

from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.load_config import all_options

# Command line options by the names of function arguments.
_OPTIONS = {
    "path": "--data",
    "max_new_tokens": "--max-tokens",
    "max_size": "--data.max_vocabulary",
    **{
        name: f"--{name}"
        for name in ("version", "seed", "temperature", "k", "p", "bound", "tolerance")
    },
}


def message_of(error: Exception) -> str | None:
    """Returns the message for an error that the user can fix, or `None` for a bug."""
    if isinstance(error, RunError | ConfigError):
        return str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError) or _is_tensorflow(error, "ResourceExhaustedError"):
        return "out of memory: process less text, or fewer tokens, at a time"
    if isinstance(error, OSError | ValueError | ImportError):
        return in_command_language(str(error))
    if _is_tensorflow(error, "OpError"):
        return _what_failed(error.message)
    return None


def in_command_language(message: str) -> str:
    """Rewrites the error message of a Python function for the command line.

    Example:

    >>> in_command_language("`max_new_tokens` must be positive. Received: max_new_tokens=0")
    '--max-tokens must be positive. Received: 0'
    >>> in_command_language("The text file is empty. Received: 'a.txt'")
    'a.txt: The text file is empty'
    """
    body, _, received = message.partition(" Received: ")
    names = {key.partition(".")[2]: f"--{key}" for key in reversed(all_options())} | _OPTIONS
    body = re.sub(r"`(\w+)`", lambda match: names.get(match[1], match[0]), body)
    if not received:
        return body
    body, received = body.rstrip(". "), received.rstrip(".")
    value = re.fullmatch(r"(?:\w+=)?'([^']*)'|(\w+)=([^=]*)", received)
    if value is None:
        # With several arguments, the message itself names the relevant ones and their values.
        return body if re.match(r"\w+=", received) else f"{body}: {received}"
    shown = value[1] if value[1] is not None else value[3]
    if shown in body.split():
        return body
    if value[1] is not None and not body.startswith("--"):
        return f"{shown}: {body}"
    return f"{body}. Received: {shown}"


def _what_failed(message: str) -> str:
    """Selects the line of a TensorFlow message that describes the error.

    Other lines describe where in a graph or a program the error occurred.

    Example:

    >>> _what_failed("Graph execution error:\\n\\nDetected at node x\\nBad shape.\\n\\t [[x]]")
    'Bad shape.'
    >>> _what_failed("{{function_node wrapped_SaveV2}} a/b; File too large [Op:SaveV2] name: ")
    'a/b; File too large'
    """
    where = ("Graph execution error", "Detected at", "File ", "[[", "Stack trace", "node ")
    message = re.sub(r"\{\{\w+ .*?\}\} ?|\s*\[Op:.*", "", message)
    lines = [line.strip() for line in message.splitlines()]
    told = [line for line in lines if line and not line.startswith(where)]
    return (told or [message.strip()])[-1]


def _is_tensorflow(error: Exception, name: str) -> TypeGuard[Any]:  # untyped classes
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and isinstance(error, getattr(tensorflow.errors, name))
