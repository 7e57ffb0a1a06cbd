"""How a program ends: its last message and its exit status."""

import sys
import traceback
from collections.abc import Callable, Sequence

from keras_drill.workbench.cli.messages import message_of
from keras_drill.workbench.cli.streams import discard_output
from keras_drill.workbench.tasks.errors import Interrupted, exit_status_of

_INTERRUPTED, _BROKEN_PIPE = 130, 141


def exit_status(
    command: Callable[[], int],
    program: str,
    show_traceback: bool = False,
    interrupts: Sequence[int] = (),
) -> int:
    """Runs a command; what goes wrong is one message on the standard error stream.

    Args:
        command: The command, which gives its exit status.
        program: What the message begins with.
        show_traceback: Whether to show where in the code an error came from.
        interrupts: Not empty once Ctrl-C was received; see `prepare_interrupts`.

    Returns:
        The exit status: that of the command, or 1 for a failure, 2 for wrong usage, 130 after
        Ctrl-C, 129 and 143 after SIGHUP and SIGTERM, 141 when nobody reads the output any more.
    """
    try:
        status = command()
        sys.stdout.flush()
        return status
    except SystemExit as stop:  # how argparse ends after help and mistakes
        if not isinstance(stop.code, int):
            raise
        return stop.code
    except Interrupted as interrupted:
        print(f"\n{program}: {interrupted}", file=sys.stderr)
        return interrupted.exit_status
    except KeyboardInterrupt:
        print(f"\n{program}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        discard_output()
        return _BROKEN_PIPE
    except Exception as error:
        if interrupts:  # a library made another error of it
            print(f"\n{program}: interrupted", file=sys.stderr)
            return _INTERRUPTED
        if show_traceback:
            traceback.print_exc()
        message = message_of(error)
        if message is None:
            message = (
                f"a mistake in the program, {type(error).__name__}: {error}; please report it with "
                "what --traceback shows"
            )
        print(f"{program}: error: {message}", file=sys.stderr)
        return exit_status_of(error)
