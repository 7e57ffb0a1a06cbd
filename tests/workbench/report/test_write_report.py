import html.parser
import math
import os
import re

import numpy as np
import pytest

from keras_drill.workbench.analysis import compare_by_frequency
from keras_drill.workbench.report import (
    RunSummary,
    SampleContinuation,
    continuations_section,
    describe_environment,
    frequency_section,
    write_report,
)

_VOID = {"meta", "br", "hr", "img", "link", "input"}
_HOSTILE = '<script>alert(1)</script> "it\'s" & </td></style><img src=//evil.example/x onerror=x>'


class _Page(html.parser.HTMLParser):
    """Checks that tags are balanced and keeps elements, text by element, and ids."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    def having(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return "".join(self.texts)


def _run(name, epochs=5, **changes):
    losses = [6 - 0.3 * epoch for epoch in range(epochs)]
    values = {
        "output_layer": "DRILL, depth 3",
        "history": {"loss": losses, "val_loss": [loss + 0.2 for loss in losses]},
        "total_parameters": 1_234_567,
        "output_parameters": 8_911,
        "valid_perplexity": 131.5,
        "test_perplexity": 127.25,
        "seconds_per_epoch": 61.0,
        "config": {"seed": 3, "model": {"units": 53, "output_layer": name}},
    }
    return RunSummary(name, **(values | changes))


_SAMPLE = SampleContinuation("The with statement", " is used to wrap.", "greedy")


def _continuations(name, *samples):
    return continuations_section({name: samples})


def _comparison(names=("tied", "drill")):
    generator = np.random.default_rng(0)
    counts = np.array([0, 7, 70, 170, 300, 700, 1700, 3000, 7000])
    targets = generator.integers(9, size=701)
    log_probs = -generator.gamma(2, 2, (2, 701))
    return compare_by_frequency(targets, *log_probs, counts, names=names, resamples=50)


def _write(tmp_path, *arguments, **keywords):
    path = write_report(tmp_path / "report.html", *arguments, **keywords)
    return _Page(path.read_text(encoding="utf-8"))


def _full(tmp_path):
    return _write(
        tmp_path,
        [_run("tied"), _run("drill", test_perplexity=120.0, seconds_per_epoch=76.25)],
        [frequency_section(_comparison(), 0, 1), _continuations("tied", _SAMPLE)],
        title="Compared",
        environment=describe_environment(["keras-drill", "demo"], seed=3),
    )


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A page with every part: as it was read, and its text."""
    folder = tmp_path_factory.mktemp("full")
    return _full(folder), (folder / "report.html").read_text(encoding="utf-8")


def test_every_part_is_on_the_page(full):
    page, _ = full
    for words in (
        "Of 2 runs, drill has the lowest test perplexity: 120.00, 5.7 % below tied (127.25).",
        "1,234,567",
        "1 min 16 s",
        "1.25×",
        "5 of 5",
        "1000–2499",
        "95 % interval",
        " is used to wrap.",
        "keras-drill demo",
        "model.units",
    ):
        assert words in page.text
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert "The with statement" in page.texts  # alone in its <strong>


def test_nothing_is_loaded_and_nothing_runs(full):
    page, text = full
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "image"}
    assert "//" not in text  # not even a namespace: no address of any kind
    assert "@import" not in text
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert attributes.get("href", "#").startswith("#")
        assert all(
            "url(" not in (value or "").replace("url(#", "") for value in attributes.values()
        )


def test_ids_are_unique_and_every_reference_has_its_target(full):
    page, text = full
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="|url\()#([^")]+)', text)
    assert references and set(references) <= set(ids)


def test_plots_and_tables_can_be_read_without_seeing(full):
    page, _ = full
    plots = [svg for svg in page.having("svg") if svg.get("aria-hidden") != "true"]
    assert len(plots) == 4 and all(svg["role"] == "img" and svg["aria-label"] for svg in plots)
    assert page.having("html") == [{"lang": "en"}]
    assert page.having("th") and all(th["scope"] in ("row", "col") for th in page.having("th"))
    assert len(page.having("caption")) == len(page.having("table"))


def test_plots_take_their_colours_from_the_page(full):
    _, text = full
    assert "var(--series-1)" in text and "prefers-color-scheme: dark" in text
    assert re.findall(r'style="[^"]*#[0-9a-f]{6}', text) == []
    assert "DejaVu Sans'" not in text


def test_hostile_text_is_shown_and_not_obeyed(tmp_path):
    run = _run(
        _HOSTILE,
        output_layer=_HOSTILE,
        config={_HOSTILE: _HOSTILE, "math": "$x^2$"},
    )
    sample = SampleContinuation(_HOSTILE, "\x00\x1b\ud800 end", _HOSTILE)
    page = _write(
        tmp_path,
        [run, _run("$\\frac{1}{$")],
        [
            frequency_section(_comparison((_HOSTILE, "other")), 0, 1),
            _continuations(_HOSTILE, sample),
        ],
        title=_HOSTILE,
        summary=_HOSTILE,
        environment={_HOSTILE: _HOSTILE},
    )
    assert not {tag for tag, _ in page.elements} & {"script", "img"}
    assert page.texts.count(_HOSTILE) >= 12
    assert "��\\ud800 end" in page.text


def test_right_to_left_text_keeps_its_direction(tmp_path):
    sample = SampleContinuation("في البداية", " كانت المدينة.")
    page = _write(tmp_path, [_run("שלום")], [_continuations("שלום", sample)])
    assert "في البداية كانت المدينة." in page.text and "שלום" in page.texts
    assert {"dir": "rtl"} in page.having("p")
    assert page.having("bdi")


def test_words_from_right_to_left_leave_those_around_them_in_their_order(tmp_path):
    sample = SampleContinuation("שלום said", " the \u202eman and مرحبا in two")
    runs = [_run("שלום"), _run("b", test_perplexity=200.0)]
    page = _write(tmp_path, runs, [_continuations("שלום", sample)])
    assert {"dir": "ltr"} in page.having("p")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        "<strong><bdi>שלום</bdi> said</strong> the <bdi>\u202eman</bdi> and <bdi>مرحبا</bdi>"
        in text
    )
    assert "Of 2 runs, <bdi>שלום</bdi> has the lowest" in text


def test_runs_that_ended_at_the_last_epoch_allowed_are_named(tmp_path):
    runs = [_run("a", max_epochs=5), _run("b", epochs=4, max_epochs=5), _run("c", max_epochs=5)]
    assert "a, c: the best epoch may be later" in _write(tmp_path, runs).text
    assert "the best epoch may be later" not in _write(tmp_path, runs[1:2]).text


def test_learning_rate_gradient_norm_and_tokens_are_drawn_where_the_history_has_them(tmp_path):
    history = {
        **_run("a").history,
        "learning_rate": [30.0, 30.0, 3.0, 3.0, 0.3],
        "gradient_norm": [0.25, math.nan, 0.125, 0.5, 0.0],
        "tokens": [math.nan, *(1009.0 * epoch for epoch in range(2, 6))],
    }
    page = _write(tmp_path, [_run("a", history=history), _run("b")])
    labels = [svg.get("aria-label", "") for svg in page.having("svg")]
    assert any("learning rate, gradient norm, tokens seen" in label for label in labels)
    assert {"5,045", "0.125", "0.3", "NaN"} <= set(page.texts)
    labels = [svg.get("aria-label", "") for svg in _write(tmp_path, [_run("b")]).having("svg")]
    assert not any("learning rate" in label for label in labels)


def test_legends_name_what_is_drawn(full, tmp_path):
    page = _write(tmp_path, [_run("a", history={"loss": [6.0, 5.0]})])
    assert "training" in page.texts
    assert not {"validation", "best epoch, whose model is kept"} & set(page.texts)
    page, _ = full
    assert {"validation", "training", "best epoch, whose model is kept"} <= set(page.texts)


def test_bins_without_tokens_leave_the_axis_and_points_that_are_not_there_the_legend(tmp_path):
    counts = np.array([7, 300])
    log_probs = np.stack([np.full(101, -3.0), np.full(101, -2.0) + np.arange(101) % 7 / 10])
    comparison = compare_by_frequency(
        np.arange(101) % 2, *log_probs, counts, names=("a", "b"), block_size=5, resamples=50
    )
    page = _write(tmp_path, [_run("a"), _run("b")], [frequency_section(comparison, 0, 1)])
    assert page.texts.count("1–49") == 3  # a row of the table, and an axis in either width
    assert page.texts.count("50–99") == 1  # only the row, which says that there are none
    assert "b better" in page.text
    assert "a better" not in page.text and "no clear difference" not in page.texts


def test_the_seeds_of_runs_are_told_and_none_is_made_up():
    assert "seed" not in describe_environment(["x"])
    assert describe_environment(["x"], seed=0)["seed"] == "0"
    assert describe_environment(["x"], seed={"a": 3, "b": 3})["seed"] == "3"
    assert describe_environment(["x"], seed={"a": 3, "b": 5})["seed"] == "a: 3, b: 5"


def test_missing_parts_leave_no_empty_columns_or_sections(tmp_path):
    page = _write(
        tmp_path, [RunSummary("only", history={"val_loss": [5.0]}, valid_perplexity=148.4)]
    )
    assert "only reaches a validation perplexity of 148.40." in page.text
    for absent in ("test perplexity", "time ratio", "By word frequency", "Continuations"):
        assert absent not in page.text
    assert "Learning curves" in page.text


@pytest.mark.parametrize("history", [{"loss": [], "val_loss": []}, {"loss": [math.nan, math.inf]}])
def test_a_run_without_a_finite_epoch_is_said_to_have_none(tmp_path, history):
    page = _write(tmp_path, [RunSummary("x", history=history), RunSummary("y")])
    assert "No epoch has a finite perplexity." in page.text
    assert "No perplexity was measured for x, y." in page.text


def test_nan_in_the_history_is_reported_and_the_rest_drawn(tmp_path):
    run = _run("broken", history={"loss": [5.0, math.nan, 4.0], "val_loss": [5.0, 4.0, math.inf]})
    page = _write(tmp_path, [run, _run("sound")])
    assert "broken has no finite perplexity at epochs 2, 3." in page.text
    assert {"NaN", "∞", "2 of 3"} <= set(page.texts)


def test_perplexities_that_are_not_finite_do_not_win(tmp_path):
    runs = [_run("a", test_perplexity=math.nan), _run("b"), _run("c", test_perplexity=math.inf)]
    assert "b reaches a test perplexity of 127.25." in _write(tmp_path, runs).text


def test_thirty_runs_of_different_lengths_have_different_keys(tmp_path):
    runs = [_run(f"run {index}", epochs=1 + index) for index in range(30)]
    page = _write(tmp_path, runs)
    keys = re.findall(
        r"<li>(<svg(?:(?!</svg>).)*</svg>)<bdi>run",
        (tmp_path / "report.html").read_text(encoding="utf-8"),
    )
    assert len(keys) == len(set(keys)) == 30
    assert page.text.count("run 29") >= 2


def test_options_that_differ_are_set_apart(full):
    text = full[0].text
    apart = text[text.index("Options in which the runs differ") : text.index("All 3 options")]
    assert "model.output_layer" in apart and "model.units" not in apart


def test_the_page_is_the_same_whatever_matplotlib_is_set_to_which_stays(full, tmp_path):
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 31}):
        _full(tmp_path)
        assert matplotlib.rcParams["font.size"] == 31
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == full[1]


def test_a_failed_write_leaves_the_old_page_and_nothing_else(tmp_path, monkeypatch):
    write_report(tmp_path / "report.html", [RunSummary("old")])
    before = (tmp_path / "report.html").read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(tmp_path / "report.html", [RunSummary("new")])
    assert (tmp_path / "report.html").read_bytes() == before
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("runs", [[], [RunSummary("a"), RunSummary("a")]])
def test_runs_need_different_names(tmp_path, runs):
    with pytest.raises(ValueError, match=r"`runs` must be .* Received: "):
        write_report(tmp_path / "report.html", runs)
