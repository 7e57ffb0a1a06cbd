"""The pages of the documentation, and their code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Needs eight devices of JAX: tests/distribute/sharded runs its code.
PAGE_ON_JAX = "docs/split-vocabularies.md"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def run_code(page: str, names: dict) -> None:
    """Runs the blocks of a page one after the other, as a reader would type them."""
    for match in re.finditer(r"```python\n(.*?)```", text_of(page), re.S):
        line = text_of(page)[: match.start()].count("\n") + 1
        source = "\n" * line + match[1]
        exec(compile(source, str(ROOT / page), "exec"), names)
