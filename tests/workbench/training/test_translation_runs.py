"""Runs of translation: training, evaluation and exports."""

import json
import math
import shutil
from unittest.mock import ANY

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from keras_drill.data import SentencePieceTokenizer
from keras_drill.workbench.cli.main import main
from keras_drill.workbench.tasks.answer import answer_all
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.load_config import load_config
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.option_changes import option_changes, recorded_options
from keras_drill.workbench.training.run_folder import RunFolder, read_history
from tests.workbench.training.runs import Killed, assert_same_bits, kill_at, train
from tests.workbench.training.tiny_pairs import tiny_pairs_config


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {
            "backbone_attention": "additive",
            "backbone_attention_layers": 2,
            "backbone_input_feeding": True,
            "sampling_schedule": "inverse-sigmoid",
            "sampling_steps": 5,
            "sampling_loss_positions": 0.7,
        },
        {
            "backbone_kind": "transformer",
            "head_kind": "kerbs",
            "sampling_one_position": True,
            "senses_per_word": 1.5,
            "senses_interval": 3,
            "optimizer_accumulate_steps": 2,
        },
    ],
)
def test_resumed_training_ends_with_the_same_bits(changes, pairs, tmp_path, monkeypatch):
    config = tiny_pairs_config(
        pairs, data_shared_vocabulary=False, training_checkpoint_every=3, **changes
    )
    whole = train(config, tmp_path / "whole")
    with monkeypatch.context() as patch:
        kill_at(patch, whole.state.step // 2 + 4)
        with pytest.raises(Killed):
            train(config, tmp_path / "killed")
    assert_same_bits(whole, train(config, tmp_path / "killed"))


@pytest.mark.slow
def test_a_run_is_evaluated_and_reported(trained):
    history = read_history(trained.history_file)
    assert len(history["val_chrf"]) == 2 and all(0 <= bleu <= 100 for bleu in history["val_bleu"])
    results = json.loads(trained.results_file.read_text())
    assert results["best_epoch"] == 1 + int(np.argmax(history["val_chrf"]))
    assert set(results["scores"]) == {"test BLEU", "test chrF"}
    assert results["texts"]["test"]["lines"] == 11
    assert results["signatures"]["BLEU"].startswith("nrefs:1|case:mixed")
    page = trained.report_file.read_text()
    assert "test BLEU" in page and "valid perplexity" in page and "Attention of trained" in page


@pytest.mark.slow
def test_without_its_training_text_a_run_is_evaluated_on_another(trained, pairs, tmp_path, capsys):
    shutil.copytree(trained.path, tmp_path / "moved")
    moved = RunFolder(tmp_path / "moved")
    moved.write_config(trained.config().replace({"data.path": str(tmp_path / "gone")}))
    assert main(["evaluate", str(moved.path), "--data", str(pairs)]) == 0
    assert "gone does not exist" in capsys.readouterr().err
    assert moved.report_file.read_text() == trained.report_file.read_text()
    page = (moved.path / f"report-{pairs.name}.html").read_text()
    assert "Words by frequency" not in page and "Texts side by side" in page
    assert "Words by frequency" in trained.report_file.read_text()
    assert main(["evaluate", str(moved.path)]) == 1


@pytest.mark.slow
def test_a_bar_of_progress_is_for_terminals(loaded, capsys):
    translator = loaded.answering_task.translator(
        loaded.model, loaded.vocabulary, loaded.answering_task.make_search()
    )
    answer_all(translator, ["der Hund"], verbose=1)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_the_answer_to_a_text_depends_on_nothing_else(loaded):
    translator = loaded.answering_task.translator(
        loaded.model, loaded.vocabulary, loaded.answering_task.make_search()
    )
    texts = ["der Hund sieht ein Vogel .", "", "ein Vogel", "unbekannt " * 200, " \u2028 "]
    together = answer_all(translator, texts)
    alone = [answer_all(translator, [text])[0] for text in texts]
    assert [one.texts for one in together] == [one.texts for one in alone]
    np.testing.assert_allclose(
        [one.scores for one in together], [one.scores for one in alone], rtol=1e-4
    )
    assert [one.is_cut for one in together] == [False, False, False, True, False]
    assert together[1].texts == ("",) and together[0].texts != ("",)
    assert answer_all(translator, []) == []


@pytest.mark.slow
def test_the_exported_model_gives_the_same_answers(trained, loaded, tmp_path):
    command = ["export", str(trained.path), "--directory", str(tmp_path), "-n", "2"]
    assert main([*command, "--num-beams", "3"]) == 0
    exported = tf.saved_model.load(str(tmp_path / "trained" / "1"))
    texts = ["der Hund sieht ein Vogel .", "", "ein alte Mann ruft"]
    found = exported.signatures["serving_default"](tf.constant(texts))
    search = loaded.answering_task.make_search(num_beams=3, num_results=2)
    translator = loaded.answering_task.translator(loaded.model, loaded.vocabulary, search)
    expected = answer_all(translator, texts)
    assert [tuple(t.decode() for t in row) for row in found["texts"].numpy()] == [
        one.texts for one in expected
    ]
    np.testing.assert_allclose(found["scores"], [one.scores for one in expected], rtol=1e-4)
    np.testing.assert_array_equal(found["is_truncated"], [one.is_truncated for one in expected])
    begins = ["the old", "the", ""]
    found = exported.signatures["complete"](texts=tf.constant(texts), prefixes=tf.constant(begins))
    expected = answer_all(translator, texts, prefixes=begins)
    found = [tuple(t.decode() for t in row) for row in found["texts"].numpy()]
    assert found == [one.texts for one in expected] and found[0][0].startswith("the old")
    requests = tmp_path / "trained" / "1" / "assets.extra" / "tf_serving_warmup_requests"
    assert len(list(tf.data.TFRecordDataset(str(requests)))) == 3


@pytest.fixture
def long_pairs(pairs, tmp_path):
    shutil.copytree(pairs, tmp_path / "long")
    for side, added in (("de", ["x " * 200, "Hund", "y " * 200]), ("en", ["a", "b", "x " * 200])):
        for split in ("train", "test"):
            with open(tmp_path / "long" / f"{split}.{side}", "a") as file:
                file.write("".join(f"{line}\n" for line in added))
    return tmp_path / "long"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "3 of 105 training pairs are dropped: 1 with an empty side, 2 longer than "
             "data.max_length = 128 tokens"),
        ({"data.long_pairs": "cut"}, "105 training pairs are truncated to data.max_length = 128 "
             "tokens (data.long_pairs = 'cut'): sources 2, targets 1"),
        ({"data.max_length": 999, "data.max_length_ratio": 50.0}, "1 with an empty side, 1 with "
             "one side more than data.max_length_ratio = 50 times as long as the other"),
    ],
)  # fmt: skip
def test_what_is_dropped_or_cut_in_training_is_counted_once(
    options, expected, loaded, long_pairs, capsys
):
    for side, line in (("de", "Hund"), ("en", "")):
        with open(long_pairs / f"train.{side}", "a") as file:
            file.write(f"{line}\n")
    task, words = make_task(loaded.task.config.replace(options)), loaded.vocabulary
    texts = task.read_texts(words, str(long_pairs))
    capsys.readouterr()
    task.training_batches(words, texts["train"])
    said = capsys.readouterr().err
    assert said.count("training pairs are") == said.count("\n") and expected in said
    # What is evaluated is evaluated as a whole.
    assert task.evaluation_batches(words, texts["test"]).num_dropped == 0


def test_runs_of_old_versions_go_on_as_they_began(pairs, tmp_path):
    """They have no `data.long_pairs`: their targets were cut and given an end."""
    config = tiny_pairs_config(pairs)
    folder = RunFolder(tmp_path)
    folder.write_config(config)
    written = folder.config_file.read_text()
    old = "".join(
        line for line in written.splitlines(keepends=True) if not line.startswith("long_pairs")
    )
    folder.config_file.write_text(old)
    assert folder.config().data.long_pairs == "end"
    assert load_config(folder.config_file).data.long_pairs == "drop"  # as a recipe
    recorded = recorded_options(config)
    del recorded["data"]["long_pairs"]
    assert option_changes(folder.config(), recorded) == []
    assert [change.name for change in option_changes(config, recorded)] == ["data.long_pairs"]


@pytest.mark.slow
def test_what_is_cut_of_answered_sources_is_counted_once(trained, long_pairs, capsys):
    assert main(["evaluate", str(trained.path), "--data", str(long_pairs)]) == 0
    said = capsys.readouterr().err
    assert "2 of 14 sources are longer than data.max_length" in said
    assert said.count("sources are longer") == 1 and said.count("outputs are incomplete") <= 1


@pytest.mark.slow
def test_answers_are_scored_given_their_sources(trained, pairs, tmp_path, capsys):
    sides = ["--sources", str(pairs / "test.de"), "--file", str(pairs / "test.en")]
    command = ["score", str(trained.path), "--format", "json"]
    assert main([*command, *sides]) == 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.splitlines()]
    # The loss of the evaluation is another way to the same figure.
    expected = json.loads(trained.results_file.read_text())["test_perplexity"]
    log_probs = [log_prob for record in records for log_prob in record["log_probs"]]
    np.testing.assert_allclose(math.exp(-np.mean(log_probs)), expected, rtol=1e-4)
    assert f"all 11 texts: {len(log_probs)} words, perplexity {expected:.2f}"[:-1] in err
    lines = [f"{one['source']}\t{one['text']}\tmore" for one in records]
    (tmp_path / "pairs.tsv").write_text("\n".join([*lines[:3], "alone", *lines[3:]]) + "\n")
    command = ["score", str(trained.path), "--format", "tsv"]
    assert main([*command, "--file", str(tmp_path / "pairs.tsv")]) == 1
    out, err = capsys.readouterr()
    assert f"{tmp_path / 'pairs.tsv'}, line 4: the text has no tab between source and target" in err
    heading, *rows = [line.split("\t") for line in out.splitlines()]
    assert heading[-2:] == ["text", "source"]
    assert [row[-2:] for row in rows] == [[one["text"], one["source"]] for one in records]
    np.testing.assert_allclose(
        [float(row[1]) for row in rows], [one["log_prob"] for one in records], rtol=1e-4
    )
    (tmp_path / "short").write_text("the dog\n")
    sides = ["--sources", str(pairs / "test.de"), "--file", str(tmp_path / "short")]
    assert main(["score", str(trained.path), *sides]) == 1
    assert f"lines in {pairs / 'test.de'}, 1 lines in" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_of_different_words_or_with_damaged_ones_are_refused(trained, pairs, tmp_path):
    config = trained.config()
    with pytest.raises(ConfigError, match="scale_with_length must be false"):
        config.replace({"optimizer.scale_with_length": True})
    with pytest.raises(ConfigError, match="validation_sentences must be positive"):
        config.replace({"decoding.validation_sentences": 0})
    other = tmp_path / "trained"
    other.mkdir()
    for file in trained.path.iterdir():
        if file.is_file():
            (other / file.name).write_bytes(file.read_bytes())
    lines = ["was ganz anderes steht hier", "und noch mehr davon bitte"] * 9
    swapped = SentencePieceTokenizer.train(lines, 56)
    (other / "tokenizer.json").write_text(json.dumps(swapped.get_config()))
    with pytest.raises(RunError, match=r"tokenizer\.json is not the tokenizer that the run was"):
        LoadedRun.load(RunFolder(other))
    (other / "tokenizer.json").write_text("{}")
    with pytest.raises(RunError, match=r"tokenizer\.json is damaged"):
        LoadedRun.load(RunFolder(other))


@pytest.mark.slow
def test_all_of_a_given_text_is_evaluated_however_it_is_given(trained, pairs, tmp_path, capsys):
    """The same pairs in one file of two columns, in two files, and as the test text of a folder."""
    lines = {
        end: "".join((pairs / f"{split}.{end}").read_text() for split in ("valid", "test") * 2)
        for end in ("de", "en")
    }
    (tmp_path / "folder").mkdir()
    for end, text in lines.items():
        (tmp_path / f"news.{end}").write_text(text)
        (tmp_path / "folder" / f"test.{end}").write_text(text)
    rows = zip(lines["de"].splitlines(), lines["en"].splitlines(), strict=True)
    (tmp_path / "news.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in rows))
    report, figures = tmp_path / "r.html", tmp_path / "figures.json"

    def evaluate(*paths):
        command = ["evaluate", str(trained.path), "--report", str(report), "--json", str(figures)]
        assert main([*command, *(f"--data={path}" for path in paths)]) == 0
        out, (run,) = capsys.readouterr().out, json.loads(figures.read_text())["runs"]
        (name,) = run["texts"]
        assert run["texts"][name] == {"lines": 48, "targets": targets, "origin": ANY}
        assert f"{targets:,}" in out and f"{targets:,}" in report.read_text()
        return name, run["perplexities"][name], run["scores"][f"{name} BLEU"], run, out

    command = ["translate", str(trained.path)]
    assert main([*command, *lines["de"].splitlines()]) == 0
    hypotheses = capsys.readouterr().out.splitlines()
    bleu = sacrebleu.metrics.BLEU()
    expected = bleu.corpus_score(hypotheses, [lines["en"].splitlines()]).score
    files = ["--sources", str(tmp_path / "news.de"), "--file", str(tmp_path / "news.en")]
    assert main(["score", str(trained.path), *files, "--format", "json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    targets = sum(record["num_words"] for record in records)
    perplexity = math.exp(-sum(record["log_prob"] for record in records) / targets)
    for name, paths in {
        "news.tsv": [tmp_path / "news.tsv"],
        "news.de + news.en": [tmp_path / "news.de", tmp_path / "news.en"],
        "test": [tmp_path / "folder"],
    }.items():
        found = evaluate(*paths)
        assert found[0] == name
        assert found[1:3] == (pytest.approx(perplexity, rel=1e-5), pytest.approx(expected))
        signature = str(bleu.get_signature())
        assert found[3]["signatures"]["BLEU"] == found[3]["text_scores"]["bleu_signature"]
        assert found[3]["signatures"]["BLEU"] == signature and signature in found[4]
    assert "Models compared" not in report.read_text()
