"""Set-up of standard streams, Ctrl-C and warnings; imports of TensorFlow without its log."""

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
    """Sets the standard streams to UTF-8 in any locale, and replaces closed streams.

    Texts are read as UTF-8, so they are also written as UTF-8, for example with `LC_ALL=C`.
    """
    for name, errors in (("stdout", "surrogateescape"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:  # closed, so `print` to it would fail or use another stream
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def prepare_interrupts() -> list[int]:
    """Installs a handler that records Ctrl-C, even if a library hides `KeyboardInterrupt`.

    Returns:
        A list that is empty until Ctrl-C is pressed.
    """
    received: list[int] = []

    def handle(number, frame):
        received.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handle)
    return received


def prepare_warnings(program: str) -> None:
    """Makes Python print each warning once, as a message of the program."""
    shown: set[str] = set()

    def show(message, category, filename, lineno, file=None, line=None):
        text = in_command_language(" ".join(str(message).split()))
        if text not in shown:
            shown.add(text)
            print(f"{program}: warning: {text}", file=sys.stderr)

    warnings.showwarning = show


def discard_output() -> None:
    """Redirects standard streams to /dev/null if they are pipes whose reader has ended.

    Otherwise Python would print an error when it flushes the streams at exit.
    """
    with open(os.devnull, "w") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:
                os.dup2(nowhere.fileno(), stream.fileno())


def import_tensorflow() -> None:
    """Imports TensorFlow and this package, and shows their log messages only on failure."""
    with _without_log():
        import_tensorflow_alone()
        import keras_drill.api  # noqa: F401  registers the classes of saved models with Keras


def import_tensorflow_alone() -> None:
    """Imports TensorFlow, and the operations of tensorflow-text that exported models need."""
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
    """Context manager that hides output on standard error, unless an exception is raised.

    TensorFlow logs several lines about missing CUDA drivers before any log level applies. Error
    messages of this program would be hard to find among these. A message on a terminal says that
    TensorFlow is being loaded.
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
