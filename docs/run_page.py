"""Runs the code of a page and keeps what it prints and draws, as a notebook does."""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

CODE = re.compile(r"```python\n(.*?)```\n?", re.S)

Outputs = list[dict[str, Any]]


def run_page(page: str) -> list[Outputs]:
    """Runs the Python blocks of a page in a temporary folder.

    Args:
        page: Markdown.

    Returns:
        For each block its outputs, in the format of notebooks: text and pictures in SVG.

    Example:

    >>> run_page("Adds.\\n\\n```python\\na = 1\\nprint(a + 1)\\n```\\n")
    [[{'output_type': 'stream', 'name': 'stdout', 'text': '2\\n'}]]
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    _take_pictures()  # those that other code left open belong to no block
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [
                _run_block(match[1], names, Path(folder, f"block_{number}.py"))
                for number, match in enumerate(CODE.finditer(page))
            ]
        finally:
            os.chdir(before)


def _run_block(source: str, names: dict[str, Any], file: Path) -> Outputs:
    file.write_text(source, encoding="utf-8")  # Autograph reads the source of functions
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, file, "exec"), names)
    outputs: Outputs = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    return outputs + [
        {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": picture}}
        for picture in _take_pictures()
    ]


def _take_pictures() -> list[str]:
    plt = sys.modules.get("matplotlib.pyplot")  # pages without plots do without it
    if plt is None:
        return []
    pictures = []
    for number in plt.get_fignums():
        file = io.StringIO()
        plt.figure(number).savefig(file, format="svg", bbox_inches="tight")
        pictures.append(file.getvalue())
    plt.close("all")
    return pictures
