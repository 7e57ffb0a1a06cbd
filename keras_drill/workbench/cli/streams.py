"""The process's standard streams, its interrupts, and TensorFlow without its log messages."""

import contextlib
import io
import logging
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator

from keras_drill.workbench.cli.messages import in_command_language


def prepare_streams() -> None:
    """Makes the standard streams UTF-8, whatever the locale, and replaces closed ones.

    Texts are UTF-8 on their way in, so they are on their way out, also under `LC_ALL=C`.
    """
    for name, errors in (("stdout", "surrogateescape"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:  # closed: `print` to it would go elsewhere, or fail
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def prepare_interrupts() -> list[int]:
    """Remembers Ctrl-C in the list that is returned, also where a library loses the exception."""
    received: list[int] = []

    def handle(number, frame):
        received.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handle)
    return received


def prepare_warnings(program: str) -> None:
    """Shows the warnings of libraries as messages of the program, each text once."""
    shown: set[str] = set()

    def show(message, category, filename, lineno, file=None, line=None):
        text = in_command_language(" ".join(str(message).split()))
        if text not in shown:
            shown.add(text)
            print(f"{program}: warning: {text}", file=sys.stderr)

    warnings.showwarning = show


def discard_output() -> None:
    """Lets what is still to be written to a pipe that nobody reads go nowhere, without a word."""
    with open(os.devnull, "w") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(nowhere.fileno(), stream.fileno())


def import_tensorflow() -> None:
    """Imports TensorFlow and all of this package; what is logged meanwhile is shown on failure."""
    with _without_log():
        import_tensorflow_alone()
        import keras_drill.api  # noqa: F401  Keras finds a saved model's classes once imported


def import_tensorflow_alone() -> None:
    """Imports TensorFlow, and what exported models need of tensorflow-text."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _without_log():
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  registers the operations of exported models

        tf.config.list_physical_devices()
        # Warnings about retracing, and about gradients of exported models, are for programmers.
        tf.get_logger().setLevel("ERROR")
        logging.getLogger("absl").setLevel(logging.ERROR)


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Holds back what is written to the standard error stream inside the block, unless it fails.

    TensorFlow writes several lines about missing CUDA drivers to it before any log level applies,
    and would hide a short error message among them. Whoever waits at a terminal meanwhile is told.
    """
    if "tensorflow" not in sys.modules and sys.stderr.isatty():
        print("loading TensorFlow", file=sys.stderr)
    with tempfile.TemporaryFile() as log:
        try:
            stream = os.dup(2)
        except OSError:  # closed
            stream = os.open(os.devnull, os.O_WRONLY)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except Exception:
            log.seek(0)
            os.write(stream, log.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stream, 2)
            os.close(stream)
