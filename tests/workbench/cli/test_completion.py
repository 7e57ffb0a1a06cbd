"""What the tab key offers, as a shell asks for it."""

import os
import subprocess
import sys

import pytest

from keras_drill.workbench.tasks.load_config import recipe_names


@pytest.mark.parametrize(
    "line, expected",
    [
        ("keras-drill ev", ["evaluate"]),
        ("keras-drill evaluate --che", ["--checkpoint"]),
        ("keras-drill train small-tie", ["small-tied"]),
        ("keras-drill recipes small-gru-", [n for n in recipe_names() if "small-gru-" in n]),
    ],
)
def test_what_a_shell_is_offered(line, expected, tmp_path):
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "offered"),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-m", "keras_drill_command"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    offered = (tmp_path / "offered").read_text().split("\n")
    assert [word.strip() for word in offered] == expected


def test_without_the_extra_and_without_a_shell_nothing_is_needed(monkeypatch):
    from keras_drill.workbench.cli.completion import complete

    monkeypatch.delenv("_ARGCOMPLETE", raising=False)
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    complete(None)
