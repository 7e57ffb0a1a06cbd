"""The pages of the documentation, and their code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Needs eight devices of JAX: tests/distribute/sharded runs its code.
PAGE_ON_JAX = "docs/how-to/split-vocabularies.md"


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    """A page without its code and without the tables that are made from results."""
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    text = re.sub(r"<!-- results: .*? end -->", "", text, flags=re.S)
    return re.sub(r"^    .*$", "", text, flags=re.M)


def run_code(page: str, names: dict) -> None:
    """Runs the blocks of a page one after the other, as a reader would type them."""
    for match in re.finditer(r"```python\n(.*?)```", text_of(page), re.S):
        line = text_of(page)[: match.start()].count("\n") + 1
        source = "\n" * line + match[1]
        exec(compile(source, str(ROOT / page), "exec"), names)
