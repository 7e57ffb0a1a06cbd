"""What of several runs is compared, and with which figures."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from keras_drill.workbench.analysis import collect_log_probs
from keras_drill.workbench.tasks.language_model import evaluation as language_model_evaluation
from keras_drill.workbench.tasks.sequence_to_sequence import task as pairs_task
from keras_drill.workbench.training import analyze_runs as analyze_module
from keras_drill.workbench.training.analyze_runs import analyze_runs
from keras_drill.workbench.training.compare_runs import compare_runs
from keras_drill.workbench.training.loaded_run import LoadedRun
from tests.workbench.training.tiny import tiny_config
from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs
from tests.workbench.training.untrained import untrained_run

BLOCK = 50  # tokens, of the bootstrap


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """Runs on one text: of other batch sizes, and of fewer words."""
    folder = tmp_path_factory.mktemp("compared")
    changes = {
        "three": {"data_batch_size": 3},
        "five": {"data_batch_size": 5, "training_seed": 1},
        "few": {"data_max_vocabulary": 7, "training_seed": 2},
    }
    return {
        name: untrained_run(tiny_config(corpus, **changed), folder / name)
        for name, changed in changes.items()
    }


def in_text_order(folder, data=None):
    """Targets and their log-probabilities, put in order by the layout of the rows alone."""
    run = LoadedRun.load(folder)
    ids = run.evaluation_texts(data)[-1].encoded
    batches = run.task.evaluation_batches(run.vocabulary, ids)
    flat = iter(collect_log_probs(run.model, batches.dataset())[1])
    windows = []
    for _, _, weights in batches.dataset():
        window = np.full(weights.shape, np.nan)
        for place in np.argwhere(weights.numpy() != 0):
            window[tuple(place)] = next(flat)
        windows.append(window)
    rows = np.concatenate(windows, axis=1).reshape(-1)
    return run, ids, rows[~np.isnan(rows)]


def page_of(path):
    text = path.read_text(encoding="utf-8")
    return text, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))


def figures_of(row, text):
    return re.search(rf"^{row} +(.*)$", text, re.M)[1].split()


def assert_by_frequency(comparison, folders):
    """A comparison is the one that NumPy finds in the order of the text."""
    (run, targets, first), (_, _, other) = map(in_text_order, folders)
    counts = np.array(run.vocabulary.counts)[targets]
    saved = other - first
    blocks = np.arange(len(targets)) // BLOCK
    found = [*comparison.bins, comparison.overall]
    assert sum(bin.tokens > 0 for bin in found) > 2
    for bin in found:
        chosen = (counts >= bin.lower) & (counts < (bin.upper or np.inf))
        assert bin.tokens == chosen.sum()
        if not bin.tokens:
            continue
        assert bin.difference == pytest.approx(saved[chosen].mean(), abs=1e-5)
        sums = [saved[chosen & (blocks == block)].sum() for block in np.unique(blocks)]
        sizes = np.array([(chosen & (blocks == block)).sum() for block in np.unique(blocks)])
        left = (np.array(sums) - bin.difference * sizes)[sizes > 0]
        error = math.sqrt(len(left) / (len(left) - 1) * (left**2).sum()) / sizes.sum()
        assert bin.standard_error == pytest.approx(error, rel=1e-4)


@pytest.mark.slow
def test_runs_of_other_batch_sizes_are_compared_by_frequency(runs, tmp_path, monkeypatch, capsys):
    folders, found = [runs["three"], runs["five"]], []
    shown = language_model_evaluation.frequency_section
    monkeypatch.setattr(
        language_model_evaluation,
        "frequency_section",
        lambda comparison, *rest, **more: (
            found.append(comparison) or shown(comparison, *rest, **more)
        ),
    )
    compare_runs(folders, tmp_path / "page.html")
    assert_by_frequency(found.pop(), folders)
    text, words = page_of(tmp_path / "page.html")
    assert "By word frequency: five against three" in words and "cannot be compared" not in words
    assert "has the lowest test perplexity" in words and "<strong>" in text
    assert "cannot be compared" not in "".join(capsys.readouterr())


@pytest.mark.slow
def test_analyses_of_runs_of_other_batch_sizes(runs, tmp_path, monkeypatch, capsys):
    folders, found = [runs["three"], runs["five"], runs["few"]], []
    write = analyze_module.write_analysis
    monkeypatch.setattr(
        analyze_module, "write_analysis", lambda *told: found.append(told) or write(*told)
    )
    analyze_runs(folders, tmp_path / "page.html", tokens=7, max_programs=0)
    ((_, _, comparisons, _, not_compared),) = found
    assert_by_frequency(*comparisons, folders[:2])
    assert list(not_compared) == ["few"]
    out, (_, words) = capsys.readouterr().out, page_of(tmp_path / "page.html")
    reason = "the vocabularies differ (three: 12 words; few: 7 words)"
    assert f"few is not compared by word frequency: {reason}" in out
    assert f"The runs cannot be compared by word frequency: {reason}." in words
    assert figures_of("≥ 5000", out) == ["0", "-", "-", "-"] and "nan" not in out


@pytest.mark.slow
def test_runs_of_other_vocabularies_are_not_ranked_by_perplexity(runs, corpus, tmp_path, capsys):
    names = ["three", "few"]
    figures = tmp_path / "figures.json"
    compare_runs([runs[name] for name in names], tmp_path / "page.html", figures=figures)
    out, err = capsys.readouterr()
    text, words = page_of(tmp_path / "page.html")
    reason = "the vocabularies differ (three: 12 words; few: 7 words)"
    for kind in ("test", "validation"):
        sentence = f"The {kind} perplexities cannot be compared: {reason}."
        assert sentence in out and sentence in words
    assert "lowest" not in words and "% below" not in words
    results, others = text.split("What can be compared")
    assert "<strong>" not in results
    assert f"three and few cannot be compared by word frequency: {reason}" in err
    assert f"cannot be compared by word frequency: {reason}." in words
    loaded = [in_text_order(runs[name]) for name in names]
    known = np.all([ids != run.vocabulary.vocabulary.unknown_id for run, ids, _ in loaded], axis=0)
    assert 0 < known.sum() < len(known)
    told = out.split("The test perplexities")[1]
    exact = json.loads(figures.read_text())["compared"][1]["figures"]
    size = len((corpus / "test.txt").read_bytes())
    for name, (run, ids, log_probs) in zip(names, loaded, strict=True):
        bits, share, _, perplexity = figures_of(name, told)
        expected = -log_probs.sum() / math.log(2) / size
        assert exact[name]["bits_per_byte"] == pytest.approx(expected, rel=1e-6)
        assert bits == f"{expected:.4f}"
        unknown = 100 * np.mean(ids == run.vocabulary.vocabulary.unknown_id)
        assert float(share) == pytest.approx(unknown, abs=0.01)
        assert float(perplexity) == pytest.approx(math.exp(-log_probs[known].mean()), abs=0.01)
    assert f"on the {known.sum()} targets that are in the vocabularies of all runs" in words
    assert "Bits per byte favour models" in words
    # Of the known words alone one is the better; bits per byte are not ranked.
    assert all("<strong>" + figures_of(name, told)[0] not in others for name in names)
    assert sum(f"<strong>{figures_of(name, told)[3]}" in others for name in names) == 1


@pytest.mark.slow
def test_bits_per_byte_are_ranked_where_no_word_is_unknown(runs, tmp_path, capsys):
    common = LoadedRun.load(runs["few"]).vocabulary.tokens[2:]
    path = tmp_path / "common.txt"
    path.write_text("".join(f"{' '.join(common[start:])}\n" for start in range(len(common))))
    compare_runs([runs["three"], runs["few"]], tmp_path / "page.html", data=str(path))
    out, (text, words) = capsys.readouterr().out, page_of(tmp_path / "page.html")
    told = out.split("perplexities cannot be compared")[1]
    bits = [figures_of(name, told)[0] for name in ("three", "few")]
    assert f"<strong>{min(bits)}</strong>" in text and f"<strong>{max(bits)}</strong>" not in text
    assert "Bits per byte favour" not in words


@pytest.mark.slow
def test_runs_on_other_texts_are_not_ranked_at_all(runs, corpus, tmp_path, capsys):
    other = tmp_path / "corpus"
    other.mkdir()
    for split in ("train", "valid", "test"):
        lines = (corpus / f"{split}.txt").read_text().splitlines(keepends=True)
        (other / f"{split}.txt").write_text("".join(lines[: None if split == "train" else 7]))
    elsewhere = untrained_run(tiny_config(other, training_seed=3), tmp_path / "elsewhere")
    compare_runs([runs["three"], elsewhere], tmp_path / "page.html")
    out, (text, words) = capsys.readouterr().out, page_of(tmp_path / "page.html")
    for said in (out, words):
        assert "The test perplexities cannot be compared: the texts differ (three: 19 lines" in said
        assert "evaluate the runs on the same text" in said and "bits per byte" not in said
    assert "<strong>" not in text.split("What can be compared")[0] and "% below" not in words


@pytest.mark.slow
def test_translations_stay_ranked_where_perplexities_are_not(tmp_path, monkeypatch, capsys):
    data = write_pairs(tmp_path / "pairs")
    references = (data / "test.en").read_text().splitlines()
    options = {"data_tokenizer": "words", "decoding_attention_maps": 0}
    folders = [
        untrained_run(
            tiny_pairs_config(data, data_vocabulary_size=size, training_seed=size, **options),
            tmp_path / f"words-{size}",
        )
        for size in (11, 13)
    ]
    right = iter([7, 11])

    def answer_all(translator, sources, verbose=0):
        number = next(right)
        texts = [*references[:number], *["a dog"] * (len(references) - number)]
        return [SimpleNamespace(texts=[text], is_cut=False, is_truncated=[False]) for text in texts]

    monkeypatch.setattr(pairs_task, "answer_all", answer_all)
    compare_runs(folders, tmp_path / "page.html")
    out, text = capsys.readouterr().out, page_of(tmp_path / "page.html")[0]
    assert "the vocabularies differ (words-11: 11 words; words-13: 13 words)" in out
    assert "<strong>100.00</strong>" in text.split("What can be compared")[0]
    perplexities = re.findall(r"words-1[13].*?(\d+\.\d\d)", out)
    assert not any(f"<strong>{each}</strong>" in text for each in perplexities)


@pytest.mark.slow
def test_targets_of_pairs_are_in_the_order_of_the_text(tmp_path):
    """With other batches they are in another order, and have the same log-probabilities."""
    data = write_pairs(tmp_path / "pairs")
    folder = untrained_run(tiny_pairs_config(data), tmp_path / "run")
    found = []
    for size in (64, 256):
        run = LoadedRun.load(folder, changes={"data.batch_tokens": size})
        texts = {text.name: text.encoded for text in run.evaluation_texts()}
        found.append(run.task._log_probs(run.model, run.vocabulary, texts))
        orders = [run.task.target_places(run.vocabulary, text) for text in texts.values()]
        assert all((np.diff(order) < 0).any() for order in orders)
    for split in ("valid", "test"):
        np.testing.assert_allclose(found[0][split], found[1][split], rtol=1e-4)
