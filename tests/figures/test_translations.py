"""Every figure that the commands print of a translation model is recomputed by other means."""

import json

import pytest

from keras_drill.workbench.cli.main import main
from tests.figures.oracles import perplexity, sacrebleu, translation_log_probs
from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def run_of(pairs, tmp_path_factory):
    """Trains a run with a tokenizer when it is first asked for."""
    folder, trained = tmp_path_factory.mktemp("runs"), {}

    def run(tokenizer, **options):
        key = (tokenizer, *options.items())
        if key not in trained:
            path = folder / f"{tokenizer}-{len(trained)}"
            config = tiny_pairs_config(
                pairs, data_tokenizer=tokenizer, training_epochs=1, **options
            )
            path.with_suffix(".toml").write_text(config.to_toml())
            assert main(["train", str(path.with_suffix(".toml")), "--run", str(path)]) == 0
            trained[key] = path
        return trained[key]

    return run


def give(way, pairs, folder):
    """The test pairs as a user may give them: the arguments, and the name of the text."""
    source, target = ((pairs / f"test.{end}").read_text() for end in ("de", "en"))
    if way == "run":
        return [], "test"
    if way == "tsv":
        rows = zip(source.splitlines(), target.splitlines(), strict=True)
        (folder / "news.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
        return ["--data", str(folder / "news.tsv")], "news.tsv"
    name = {"two files": "news", "folder": "test"}[way]
    for end, text in (("de", source), ("en", target)):
        (folder / f"{name}.{end}").write_text(text)
    if way == "folder":
        return ["--data", str(folder)], "test"
    files = [str(folder / f"news.{end}") for end in ("de", "en")]
    return [word for file in files for word in ("--data", file)], "news.de + news.en"


def evaluate(run, arguments, folder, capsys):
    capsys.readouterr()
    figures, page = folder / "figures.json", folder / "page.html"
    command = ["evaluate", str(run), *arguments, "--json", str(figures), "--report", str(page)]
    assert main(command) == 0
    (record,) = json.loads(figures.read_text())["runs"]
    return record, capsys.readouterr().out, page.read_text("utf-8")


def check(run, pairs, arguments, name, folder, capsys, *options):
    """Compares all figures of an evaluation with the oracles'."""
    record, printed, page = evaluate(run, arguments, folder, capsys)
    sources, targets = ((pairs / f"test.{end}").read_text().splitlines() for end in ("de", "en"))
    expected = translation_log_probs(run, sources, targets)
    assert record["perplexities"][name] == pytest.approx(perplexity(expected), rel=1e-4)
    assert record["texts"][name]["lines"] == len(sources)
    assert record["texts"][name]["targets"] == len(expected)
    outputs = folder / "outputs.en"
    command = ["translate", str(run), "--format", "text", "--output", str(outputs)]
    assert main([*command, "--file", str(pairs / "test.de")]) == 0
    by_program = sacrebleu(pairs / "test.en", outputs, *options)
    scores = by_program["BLEU"]["score"], by_program["chrF2"]["score"]
    found = record["scores"][f"{name} BLEU"], record["scores"][f"{name} chrF"]
    assert found == pytest.approx(scores, abs=1e-5)
    for shown in (printed, page):
        assert f"{perplexity(expected):.2f}" in shown
        assert all(f"{score:.2f}" in shown for score in scores)
    assert record["signatures"]["BLEU"] in printed
    return by_program, record


@pytest.mark.parametrize("way", ["tsv", "run", "two files", "folder"])
def test_all_ways_of_giving_pairs_have_the_same_figures(way, run_of, pairs, tmp_path, capsys):
    arguments, name = give(way, pairs, tmp_path)
    check(run_of("bpe"), pairs, arguments, name, tmp_path, capsys)


@pytest.mark.parametrize(
    "tokenizer, tokenize",
    [
        ("whitespace", "none"),
        ("words", "13a"),
        ("unigram", "13a"),
    ],
)
def test_scores_are_those_of_the_files(tokenizer, tokenize, run_of, pairs, tmp_path, capsys):
    by_program, record = check(
        run_of(tokenizer), pairs, [], "test", tmp_path, capsys, "--tokenize", tokenize
    )
    assert f"|tok:{tokenize}|" in record["signatures"]["BLEU"]
    assert by_program["BLEU"]["case"] == "mixed" and "|case:mixed|" in record["signatures"]["BLEU"]


def test_lower_cased_texts_are_scored_in_lower_case(run_of, pairs, tmp_path, capsys):
    run = run_of("words", data_lowercase=True)
    record, _, _ = evaluate(run, [], tmp_path, capsys)
    outputs = tmp_path / "outputs.en"
    command = ["translate", str(run), "--format", "text", "--output", str(outputs)]
    assert main([*command, "--file", str(pairs / "test.de")]) == 0
    by_program = sacrebleu(pairs / "test.en", outputs, "--lowercase")
    assert record["scores"]["test BLEU"] == pytest.approx(by_program["BLEU"]["score"], abs=1e-5)
    assert "|case:lc|" in record["signatures"]["BLEU"]


def test_score_has_the_total_of_the_pairs(run_of, pairs, capsys):
    run = run_of("bpe")
    sources, targets = ((pairs / f"test.{end}").read_text().splitlines() for end in ("de", "en"))
    expected = translation_log_probs(run, sources, targets)
    capsys.readouterr()
    files = ["--sources", str(pairs / "test.de"), "--file", str(pairs / "test.en")]
    assert main(["score", str(run), *files, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [each for row in rows for each in row["log_probs"]]
    assert found == pytest.approx(expected.tolist(), rel=1e-3)
    assert main(["score", str(run), *files, "--total"]) == 0
    assert f"{perplexity(expected):.2f}"[:-1] in capsys.readouterr().out


def test_history_has_the_perplexity_of_the_validation_pairs(run_of, pairs):
    run = run_of("bpe")
    sources, targets = ((pairs / f"valid.{end}").read_text().splitlines() for end in ("de", "en"))
    expected = perplexity(translation_log_probs(run, sources, targets))
    header, *rows = (run / "history.csv").read_text().splitlines()
    values = dict(zip(header.split(","), rows[-1].split(","), strict=True))
    assert float(values["val_perplexity"]) == pytest.approx(expected, rel=1e-4)
