"""What the documentation says can be done, is done: its code, its commands and its links."""

import itertools
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

import keras_drill
import keras_drill.data
from docs.write_reference import GENERATED, write_pages
from keras_drill.workbench.cli import main as program
from keras_drill.workbench.cli import train
from keras_drill.workbench.cli.main import main
from keras_drill.workbench.tasks.load_config import CONFIGS, load_config
from tests.docs.pages import PAGE_ON_JAX, ROOT, run_code, text_of

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("saved_models/*.md")]
    if "generated" not in path.parts  # made from docstrings, whose examples are doctests
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def code_lines(page: str) -> list[str]:
    """The lines of indented and fenced blocks that are no Python, and their neighbours' order."""
    text = re.sub(r"```python\n.*?```", "", text_of(page), flags=re.S)
    lines, fenced = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            lines.append(line.strip())
    return lines


def anchors(page: str) -> set[str]:
    """The anchors that headings get: lower case, no punctuation, blanks become hyphens."""
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.S)
    titles = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (ROOT / page).parent / file if file else ROOT / page
        if found.parent == GENERATED:  # which only `make docs` writes
            assert found.stem in write_pages(), f"{page} links to {target}"
            continue
        assert found.exists(), f"{page} links to {target}"
        if anchor:
            name = str(found.resolve().relative_to(ROOT))
            assert anchor in anchors(name), f"{page} links to {target}"


def test_answers_of_the_first_page_have_code_that_runs():
    rows = re.findall(r"^\| (.*\?) \| \[.*\]\((.*)\) \|$", text_of("docs/index.md"), re.M)
    assert len(rows) >= 13
    for question, target in rows:
        assert "```python" in text_of(f"docs/{target.partition('#')[0]}"), question


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    for name in re.findall(
        r"`((?:tests|benchmarks|keras_drill|docs)/[\w./-]+\.\w+)`", text_of(page)
    ):
        assert (ROOT / name).exists(), f"{page} names {name}"


def commands(page: str) -> list[tuple[str, str]]:
    """Lines that call `keras-drill`, each with the line that follows."""
    lines = [*code_lines(page), ""]
    found = [
        (line.removeprefix("$ "), after)
        for line, after in itertools.pairwise(lines)
        if line.removeprefix("$ ").startswith("keras-drill ")
    ]
    return [(line, after) for line, after in found if not line.startswith("keras-drill: ")]


def is_synopsis(line: str) -> bool:
    return bool(re.search(r"\[|\||\b[A-Z]{2,}\b(?!\.)", line))


def status_of(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_commands_are_understood(page, monkeypatch, capsys):
    """Everything but the work itself: the arguments, the recipes and the options of recipes."""

    def configure(args):
        if args.recipe is not None and not Path(args.recipe).suffix:
            load_config(args.recipe).replace(args.overrides)
        return 0

    for command in program._COMMANDS:
        monkeypatch.setattr(command, "run", lambda args: 0)
    monkeypatch.setattr(train, "run", configure)
    for line, after in commands(page):
        if is_synopsis(line):
            continue
        words = shlex.split(re.split(r"\s[<>|]\s|\s\\$", line)[0], comments=True)[1:]
        status = status_of(words)
        error = capsys.readouterr().err
        if after.startswith("keras-drill: error: "):
            assert status and error.strip() == after, f"{page}: {line}"
        else:
            assert not status, f"{page}: {line}: {error}"


@pytest.mark.parametrize("page", PAGES)
def test_options_in_synopses_exist(page, capsys):
    inline = re.findall(r"`(keras-drill [^`\n]*)`", text_of(page))
    for line in [*(line for line, _ in commands(page)), *inline]:
        command = re.match(r"keras-drill ([a-z-]+)", line)
        if command is None or not is_synopsis(line):
            continue
        status_of([command[1], "--help"])
        usage = capsys.readouterr().out
        for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*(?![\w.-])", line.split(" ", 2)[-1]):
            assert option in usage, f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES)
def test_options_of_recipes_exist(page):
    options = {name for config in CONFIGS for name in config.options()}
    sections = "|".join(sorted({name.partition(".")[0] for name in options}))
    head = keras_drill.KernelizedBayesianSoftmax(5, embedding_dim=3)
    rooms = {"data": keras_drill.data, "decoding": keras_drill.decoding, "head": head}
    for name in re.findall(rf"`((?:{sections})\.(?!html)[a-z_]+)", text_of(page)):
        room, _, thing = name.partition(".")
        assert name in options or hasattr(rooms.get(room), thing), f"{page} names {name}"


@pytest.mark.parametrize("page", PAGES)
def test_modules_and_targets_exist(page):
    makefile = text_of("Makefile")
    text = "\n".join([*code_lines(page), *re.findall(r"`([^`\n]+)`", text_of(page))])
    for module in re.findall(r"python3? -m ([\w.]+)", text):
        assert find_spec(module) is not None, f"{page}: python -m {module}"
    for line in re.findall(r"^(?:\$ )?make ([^#\n]*)", text, re.M):
        for target in re.findall(r"(?:^|\s)([a-z-]+)(?=\s|$)", line):
            assert re.search(rf"^{target}:", makefile, re.M), f"{page}: make {target}"


@pytest.mark.slow  # `make test-docs` runs it
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in text_of(page) and page != PAGE_ON_JAX]
)
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_code(page, {})  # a page imports and makes all that it uses
