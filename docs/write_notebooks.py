"""Writes the tutorials as notebooks, which their pages offer to download.

    python -m docs.write_notebooks

The notebooks go to `docs/tutorials/generated/`, which git does not keep. `make docs` calls this.
"""

import json
import re
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parent / "tutorials"
GENERATED = TUTORIALS / "generated"


def make_notebook(page: str) -> dict[str, Any]:
    """A notebook in Jupyter's format 4.5: a cell of code for each block of Python.

    >>> notebook = make_notebook("# Title\\n\\n```python\\n1 + 1\\n```\\n")
    >>> [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]]
    [('markdown', '# Title'), ('code', '1 + 1')]
    """
    cells = []
    for number, part in enumerate(re.split(r"```python\n(.*?)```", page, flags=re.S)):
        if not part.strip():
            continue
        cell = {"id": f"cell-{number}", "metadata": {}, "source": part.strip()}
        if number % 2:
            cells.append({**cell, "cell_type": "code", "execution_count": None, "outputs": []})
        else:
            cells.append({**cell, "cell_type": "markdown"})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def main() -> None:
    GENERATED.mkdir(exist_ok=True)
    for page in TUTORIALS.glob("*.md"):
        if page.stem != "index":
            text = json.dumps(make_notebook(page.read_text(encoding="utf-8")), indent=1)
            (GENERATED / f"{page.stem}.ipynb").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
