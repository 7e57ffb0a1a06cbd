"""A training that is told to stop."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from keras_drill.workbench.cli.exit_status import exit_status
from keras_drill.workbench.tasks.errors import Interrupted
from keras_drill.workbench.training.callbacks import StopSignal

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture(autouse=True)
def as_in_a_terminal():
    """`nohup`, or a shell in whose background tests run, has them ignore some."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_has_a_status_of_its_own(number, capsys):
    before = signal.getsignal(number)

    def command():
        with StopSignal("again") as stop_signal:
            assert not stop_signal.received
            signal.raise_signal(number)
            assert stop_signal.received == number
            stop_signal.raise_interrupted()
        return 0

    assert exit_status(command, "program") == SIGNALS[number]
    assert "a checkpoint was saved. To resume: again" in capsys.readouterr().err
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGHUP])
def test_the_second_signal_stops_at_once(first):
    with StopSignal("again"), pytest.raises(Interrupted, match="at once") as stopped:
        signal.raise_signal(first)
        signal.raise_signal(signal.SIGTERM)
    assert stopped.value.exit_status == 143


def test_what_the_process_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignal("again") as stop_signal:
            signal.raise_signal(signal.SIGHUP)
            assert not stop_signal.received
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


CLOSED_TERMINAL = """
import sys, time
from keras_drill.workbench.training.callbacks import StopSignal
with StopSignal("again") as stop_signal:
    print("ready", flush=True)
    while not stop_signal.received:
        time.sleep(0.01)
    print("still going on", flush=True)
sys.exit(17)
"""


@pytest.mark.slow
def test_a_closed_terminal_is_no_error():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CLOSED_TERMINAL],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    assert b"ready" in os.read(ours, 100)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 17
