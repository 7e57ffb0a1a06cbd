"""Pages show the figures that the files under `results/` hold."""

import re

import pytest

from benchmarks.accelerator.__main__ import parse_arguments
from docs.prose_figures import find_unknown
from docs.render_results import BLOCK, PICTURES, outdated, pages
from docs.results_data import RESULTS, ROOT, load_results
from tests.docs.pages import prose_of

RESULT_PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))


def test_pages_and_charts_are_those_of_the_files():
    due = [str(path.relative_to(ROOT)) for path in outdated()]
    assert not due, "out of date: python -m docs.render_results"


def test_result_pages_have_no_table_of_figures_of_their_own():
    for page in RESULT_PAGES:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        tables = [line for line in text.splitlines() if re.match(r"\|.*\d\.\d", line)]
        assert not tables, f"{page.name}: move these figures to a file under results/"


@pytest.mark.parametrize("name", sorted(path.stem for path in RESULTS.glob("*.json")))
def test_results_say_how_they_were_made(name):
    found = load_results(name)
    assert found["command"]
    if found.get("transcribed"):
        assert {"source", "source_commit", "versions", "hardware"} <= set(found)


def test_commands_of_the_benchmark_of_accelerators_are_ones_that_it_takes():
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    commands = re.findall(r"python -m benchmarks\.accelerator (-[^`\n]*)", "\n".join(texts))
    assert commands
    for command in commands:
        parse_arguments(command.split())


def test_every_result_is_on_a_page():
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    shown = {match["name"].partition("/")[0] for match in BLOCK.finditer(text)}
    files = {re.sub("^accelerator-.*", "accelerator", path.stem) for path in RESULTS.glob("*.json")}
    assert files <= shown


def test_every_picture_is_on_a_page():
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    for picture in PICTURES.iterdir():
        assert picture.name in text


@pytest.mark.parametrize("page", [page.name for page in RESULT_PAGES])
def test_result_pages_are_short(page):
    assert len(prose_of(f"docs/results/{page}").split()) <= 600


def test_the_documentation_is_short():
    names = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("**/*.md")]
    words = sum(len(prose_of(name).split()) for name in names if "generated" not in name)
    assert words <= 25_000


@pytest.mark.parametrize("page", ["README.md", *(f"docs/results/{p.name}" for p in RESULT_PAGES)])
def test_figures_in_prose_are_in_files(page):
    overview = page in ("README.md", "docs/results/index.md")
    unknown = find_unknown((ROOT / page).read_text(encoding="utf-8"), overview)
    assert not unknown, f"{page}: write {unknown} to `prose` of a file under results/"


def test_a_figure_that_no_file_holds_is_found():
    page = "<!-- results: decoding/lstm begin -->\n<!-- results: decoding/lstm end -->\n"
    assert find_unknown(page + "It is 1.6 times as fast.") == []
    assert find_unknown(page + "It is 1.96 times as fast.") == ["1.96"]
