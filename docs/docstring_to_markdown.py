"""Docstrings of the package as Markdown pages."""

import re

_SECTION = re.compile(r"^([A-Z][A-Za-z ]+):$")
_ITEM = re.compile(r"^(\*{0,2}\w[\w, `*]*(?: \([^)]*\))?): (.*)$")


def docstring_to_markdown(text: str) -> str:
    """Sections become bold words, their items lists, and examples fenced blocks.

    >>> print(docstring_to_markdown("Adds.\\n\\nArgs:\\n    a: One.\\n      More."))
    Adds.
    <BLANKLINE>
    **Args**
    <BLANKLINE>
    - `a`: One. More.
    """
    blocks: list[str] = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        section = _SECTION.match(lines[place])
        if lines[place].startswith(">>>"):
            place, block = _take_while(lines, place, lambda line: bool(line.strip()))
            blocks.append("```python\n" + "\n".join(block) + "\n```")
        elif section:
            place, block = _take_while(
                lines, place + 1, lambda line: not line.strip() or line.startswith("    ")
            )
            blocks.append(f"**{section[1]}**")
            blocks.append(_section_body([line[4:] for line in block]))
        else:
            place, block = _take_while(lines, place, lambda line: bool(line.strip()))
            blocks.append("\n".join(block))
        while place < len(lines) and not lines[place].strip():
            place += 1
    return "\n\n".join(block for block in blocks if block.strip())


def _take_while(lines, place, holds) -> tuple[int, list[str]]:
    start = place
    while place < len(lines) and (place == start or holds(lines[place])):
        if _SECTION.match(lines[place]) and place > start and not lines[place].startswith(" "):
            break
        place += 1
    return place, lines[start:place]


def _section_body(lines: list[str]) -> str:
    """The items of a section as a list, where it has items."""
    if not any(_ITEM.match(line) for line in lines):
        return "\n".join(lines).strip("\n")
    items: list[str] = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            name = item[1].strip("`")
            items.append(f"- `{name}`: {item[2]}")
        elif line.strip() and items:
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line.strip())
    return "\n".join(items)
