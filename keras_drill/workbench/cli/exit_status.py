"""Exit status and error message of a program."""

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
    """Runs a command, and prints an error as one message on standard error.

    Args:
        command: The command, which returns its exit status.
        program: Name of the program, which stands at the beginning of the message.
        show_traceback: Whether to print the traceback of an error.
        interrupts: List from `prepare_interrupts`, which is not empty after Ctrl-C.

    Returns:
        The exit status of the command. Otherwise: 1 for a failure, 2 for wrong usage, 130 after
        Ctrl-C, 129 after SIGHUP, 143 after SIGTERM, and 141 if the reader of the output has ended.
    """
    try:
        status = command()
        sys.stdout.flush()
        return status
    except SystemExit as stop:  # argparse raises this after help and wrong usage
        if not isinstance(stop.code, int):
            raise
        return stop.code
    except Interrupted as interrupted:
        print(f"\n{program}: {interrupted}", file=sys.stderr)
        return interrupted.exit_status
    except KeyboardInterrupt:
        print(f"\n{program}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, for example `head`, has ended
        discard_output()
        return _BROKEN_PIPE
    except Exception as error:
        if interrupts:  # a library has replaced `KeyboardInterrupt` by another error
            print(f"\n{program}: interrupted", file=sys.stderr)
            return _INTERRUPTED
        if show_traceback:
            traceback.print_exc()
        message = message_of(error)
        if message is None:
            message = (
                f"internal error, {type(error).__name__}: {error}; please report this bug "
                "with the output of --traceback"
            )
        print(f"{program}: error: {message}", file=sys.stderr)
        return exit_status_of(error)
