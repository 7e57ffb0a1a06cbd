"""Runs the tutorials and writes them as notebooks, with their outputs.

    python -m docs.write_notebooks

The notebooks go to `docs/tutorials/generated/`, which git does not keep. `make docs` calls this.
The site shows the outputs and offers the notebooks for download.
"""

import json
import multiprocessing
import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from docs.run_page import Outputs, run_page

TUTORIALS = Path(__file__).parent / "tutorials"
GENERATED = TUTORIALS / "generated"


def make_notebook(page: str, outputs: Sequence[Outputs] = ()) -> dict[str, Any]:
    """A notebook in Jupyter's format 4.5: a cell of code for each block of Python.

    Args:
        page: Markdown.
        outputs: The outputs of its blocks, see `run_page`.

    Example:

    >>> notebook = make_notebook("# Title\\n\\n```python\\n1 + 1\\n```\\n")
    >>> [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]
    [('markdown', '# Title'), ('code', '1 + 1')]
    """
    cells = []
    of_block = iter(outputs)
    for number, part in enumerate(re.split(r"```python\n(.*?)```", page, flags=re.S)):
        if not part.strip():
            continue
        cell = {"id": f"cell-{number}", "metadata": {}, "source": part.strip()}
        if number % 2:
            shown = {"execution_count": None, "outputs": next(of_block, [])}
            cells.append({**cell, "cell_type": "code", **shown})
        else:
            cells.append({**cell, "cell_type": "markdown"})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def show_outputs(page: str, outputs: Sequence[Outputs], name: str, folder: Path) -> str:
    """A page with the outputs below its blocks.

    Args:
        page: Markdown.
        outputs: The outputs of its blocks.
        name: Name of the page, with which the files of pictures begin.
        folder: Where pictures are written.

    Example:

    >>> printed = {"output_type": "stream", "text": "2\\n"}
    >>> show_outputs("```python\\nprint(1 + 1)\\n```\\n", [[printed]], "page", Path("."))
    '```python\\nprint(1 + 1)\\n```\\n\\n```text\\n2\\n```\\n\\n'
    """
    of_block = iter(outputs)

    def show(match: re.Match) -> str:
        parts = [match[0]]
        for output in next(of_block, []):
            if "text" in output:
                parts.append(f"```text\n{output['text'].rstrip()}\n```\n")
            else:
                file = folder / f"{name}-{match.start()}.svg"
                file.write_text(output["data"]["image/svg+xml"], encoding="utf-8")
                parts.append(f"![Output of the code above](generated/{file.name})\n")
        return "\n".join([*parts, ""]) if parts[1:] else match[0]

    return re.sub(r"```python\n.*?```\n", show, page, flags=re.S)


def read_outputs(name: str) -> list[Outputs]:
    """The outputs of the blocks of a tutorial, from its notebook."""
    notebook = json.loads((GENERATED / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def write_notebook(name: str) -> str:
    """Runs a tutorial and writes its notebook. Returns a line of what was done."""
    start = time.monotonic()
    page = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    text = json.dumps(make_notebook(page, run_page(page)), indent=1)
    (GENERATED / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
    return f"ran docs/tutorials/{name}.md in {time.monotonic() - start:.0f} s"


def main() -> None:
    GENERATED.mkdir(exist_ok=True)
    os.environ["MPLBACKEND"] = "agg"
    names = sorted(page.stem for page in TUTORIALS.glob("*.md") if page.stem != "index")
    spawn = multiprocessing.get_context("spawn")  # each has a process of its own
    with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as processes:
        for line in processes.map(write_notebook, names):
            print(line)


if __name__ == "__main__":
    main()
