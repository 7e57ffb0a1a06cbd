"""Every figure that the commands print of a language model is recomputed by other means."""

import gzip
import json
import math
import re

import numpy as np
import pytest

from keras_drill.workbench.cli.main import main
from tests.figures.oracles import language_model_log_probs, perplexity, read_ids
from tests.workbench.training.tiny import tiny_config, write_corpus

pytestmark = pytest.mark.slow

LINES = [
    "the cat sees a dog .",
    "",
    "an unheard zebra follows the old bird .",
    "a dog hears the cat .",
    *[f"the old bird {verb} a dog ." for verb in ("sees", "hears", "follows")] * 7,
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """Two runs that read rows of other numbers and other words side by side."""
    folder = tmp_path_factory.mktemp("runs")
    for name, rows, words, tokenizer in (
        ("three", 3, 0, "whitespace"),
        ("five", 5, 0, "whitespace"),
        ("few", 3, 11, "whitespace"),
        ("words", 3, 0, "words"),
    ):
        config = tiny_config(
            corpus,
            data_batch_size=rows,
            data_max_vocabulary=words,
            data_tokenizer=tokenizer,
            training_epochs=1,
        )
        (folder / f"{name}.toml").write_text(config.to_toml())
        assert main(["train", str(folder / f"{name}.toml"), "--run", str(folder / name)]) == 0
    return folder


def give(way, folder):
    """The text in a file, a compressed one, or a folder; and its name."""
    text = "".join(f"{line}\n" for line in LINES)
    if way == "file":
        (folder / "news.txt").write_text(text)
        return folder / "news.txt", "news.txt"
    if way == "gzip":
        (folder / "news.txt.gz").write_bytes(gzip.compress(text.encode()))
        return folder / "news.txt.gz", "news.txt.gz"
    (folder / "test.txt").write_text(text)
    if way == "folder":
        for name in ("train.txt", "valid.txt"):
            (folder / name).write_text("a dog .\n")
    return folder, "test"


def evaluate(runs, names, data, folder, capsys):
    """The figures as JSON, by run, what was printed, and the page."""
    capsys.readouterr()
    figures, page = folder / "figures.json", folder / "page.html"
    command = ["evaluate", *[str(runs / name) for name in names], "--json", str(figures)]
    assert main([*command, "--report", str(page), "--data", str(data)]) == 0
    record = json.loads(figures.read_text())
    printed = capsys.readouterr().out
    return {run["name"]: run for run in record["runs"]}, printed, page.read_text("utf-8")


@pytest.mark.parametrize("way", ["file", "gzip", "folder", "test alone"])
def test_the_perplexity_is_that_of_the_whole_text(way, runs, tmp_path, capsys):
    data, name = give(way, tmp_path)
    figures, printed, page = evaluate(runs, ["three"], data, tmp_path, capsys)
    expected = language_model_log_probs(runs / "three", LINES, rows=3)
    assert figures["three"]["perplexities"][name] == pytest.approx(perplexity(expected), rel=1e-5)
    assert figures["three"]["texts"][name]["lines"] == len(LINES)
    assert figures["three"]["texts"][name]["targets"] == len(expected)
    for shown in (printed, page):
        assert f"{perplexity(expected):.2f}" in shown
        assert f"{len(expected):,}" in shown and str(data) in shown


def test_rows_of_another_number_are_compared_word_by_word(runs, tmp_path, capsys):
    data, name = give("file", tmp_path)
    figures, _, page = evaluate(runs, ["three", "five"], data, tmp_path, capsys)
    found = {
        run: language_model_log_probs(runs / run, LINES, rows)
        for run, rows in (("three", 3), ("five", 5))
    }
    for run, log_probs in found.items():
        assert figures[run]["perplexities"][name] == pytest.approx(perplexity(log_probs), rel=1e-5)
    # By frequency in the training text: the nats that the second saves, the mean over a bin.
    counts = dict(zip(read_ids(runs / "three"), _counts(runs / "three"), strict=True))
    words = [word for line in LINES for word in [*line.split(), "<eos>"]]
    seen = np.array([counts.get(word, counts["<unk>"]) for word in words])
    gains = found["five"] - found["three"]
    shown = " ".join(re.sub("<svg.*?</svg>|<[^>]+>", " ", page, flags=re.S).split())
    for label, low, high in (
        ("unseen", 0, 0),
        ("1–49", 1, 49),
        ("50–99", 50, 99),
        ("100–249", 100, 249),
    ):
        chosen = (low <= seen) & (seen <= high)
        row = re.search(rf"{label} {chosen.sum()} \d+ [\d.]+ [\d.]+ ([+−][\d.]+)", shown)
        assert float(row[1].replace("−", "-")) == pytest.approx(gains[chosen].mean(), abs=6e-4)


def test_other_words_are_not_ranked(runs, tmp_path, capsys):
    data, name = give("file", tmp_path)
    figures, printed, page = evaluate(runs, ["three", "few"], data, tmp_path, capsys)
    for run in ("three", "few"):
        expected = perplexity(language_model_log_probs(runs / run, LINES, rows=3))
        assert figures[run]["perplexities"][name] == pytest.approx(expected, rel=1e-5)
    assert "lowest" not in page and "% below" not in page
    assert "Compare only curves of the same run" in page
    sizes = [len(read_ids(runs / run)) for run in ("three", "few")]
    for shown in (printed, page):
        assert "vocabular" in shown and all(str(size) in shown for size in sizes)


def test_tokenizers_that_cut_alike_have_the_figures_of_their_words(runs, tmp_path, capsys):
    data, name = give("file", tmp_path)
    figures, _, _ = evaluate(runs, ["words"], data, tmp_path, capsys)
    expected = perplexity(language_model_log_probs(runs / "words", LINES, rows=3))
    assert figures["words"]["perplexities"][name] == pytest.approx(expected, rel=1e-5)


def test_score_gives_each_line_and_the_whole(runs, tmp_path, capsys):
    data, _ = give("file", tmp_path)
    capsys.readouterr()
    command = ["score", str(runs / "three"), "--file", str(data), "--lines", "--format", "json"]
    assert main(command) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    # A line alone: read from an empty state, after the end of a line.
    for line, row in list(zip(LINES, rows, strict=True))[:4]:
        expected = _alone(runs / "three", line)
        np.testing.assert_allclose(row["log_probs"], expected, rtol=1e-4)


def _alone(run, line):
    """Log-probabilities of a line that is read alone."""
    return language_model_log_probs(run, [line], rows=3)


def _counts(run):
    return [int(line) for line in (run / "vocabulary.counts").read_text().split()]


def test_history_has_the_perplexity_of_the_validation_text(runs, corpus):
    lines = (corpus / "valid.txt").read_text().splitlines()
    expected = perplexity(language_model_log_probs(runs / "three", lines, rows=3))
    header, *rows = (runs / "three" / "history.csv").read_text().splitlines()
    values = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    assert float(values["val_perplexity"]) == pytest.approx(expected, rel=1e-4)
    assert math.isfinite(float(values["loss"]))
