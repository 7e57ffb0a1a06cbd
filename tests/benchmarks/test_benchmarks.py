"""Every benchmark runs, at the smallest sizes, and prints the figures that it is there for."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.new_heads import contexts_of, kerbs, tied_model
from tests.workbench.training.tiny import write_corpus

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def run(name, *arguments, backend="tensorflow"):
    result = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def figures(output, label) -> list[float]:
    """The numbers on the first line that begins with `label`."""
    line = next(line for line in output.splitlines() if line.strip(" |").startswith(label))
    found = [float(x) for x in re.findall(r"-?\d+\.\d+", line.replace(label, "", 1))]
    assert np.isfinite(found).all()
    return found


def test_linear_cross_entropy():
    output = run("linear_cross_entropy", "--sizes", "53,101,7", "--rounds", 1)
    seconds, ratio = figures(output, "fused bfloat16")
    assert seconds >= 0 and ratio > 0  # seconds are rounded to milliseconds


def test_distillation(tmp_path):
    file = tmp_path / "found.json"
    run("distillation", "--sizes", "53,101,7,11", "--rounds", 1, "--json", file)
    (row,) = json.loads(file.read_text())["tables"]["loss"]["rows"]
    assert row[0] == "53 × 101 × 7 × 11"
    assert row[3] > 0


def test_distillation_study(tmp_path):
    write_corpus(tmp_path / "text")
    file = tmp_path / "found.json"
    run("distillation_study", "--folder", tmp_path / "study", "--data", tmp_path / "text",
        "--students", "alone", "reverse KL", "--tokenizer", "whitespace", "--one-teacher",
        "--seeds", 0, 3, "--epochs", 1, "--at-most", 1, "--json", file)  # fmt: skip
    rows = json.loads(file.read_text())["tables"]["test-perplexity"]["rows"]
    found = {
        path.stem: json.loads(path.read_text())["test"]
        for path in (tmp_path / "study").glob("*.json")
    }
    assert found.keys() == {"teacher-0", "alone-0", "alone-3", "reverse-KL-0", "reverse-KL-3"}
    teacher, alone, taught = rows
    assert teacher[0] == "teacher" and teacher[2] == pytest.approx(found["teacher-0"], abs=0.1)
    assert teacher[3] == alone[3] == ""
    assert alone[2][0] == pytest.approx((found["alone-0"] + found["alone-3"]) / 2, abs=0.1)
    beyond = [found[f"reverse-KL-{seed}"] - found[f"alone-{seed}"] for seed in (0, 3)]
    assert taught[3][0] == pytest.approx(np.mean(beyond), abs=0.1)


def test_new_heads(tmp_path):
    write_corpus(tmp_path / "text")
    file = tmp_path / "found.json"
    run("new_heads", "--folder", tmp_path / "study", "--data", tmp_path / "text", "--seeds", 0, 3,
        "--heads", "tied", "2 senses a word, split", "--epochs", 1, "--at-most", 1,
        "--json", file)  # fmt: skip
    trained, tied, split = json.loads(file.read_text())["tables"]["perplexity"]["rows"]
    found = {
        path.stem: json.loads(path.read_text())["test"]
        for path in (tmp_path / "study").glob("*.json")
    }
    assert trained[2][0] == pytest.approx((found["trained-0"] + found["trained-3"]) / 2, abs=0.1)
    assert trained[3] == tied[3] == ""
    beyond = [found[f"2-senses-a-word-split-{seed}"] - found[f"tied-{seed}"] for seed in (0, 3)]
    assert split[3][0] == pytest.approx(np.mean(beyond), abs=0.1)


def test_split_senses():
    """Both senses of a word are as probable, over its contexts, and their logits differ."""
    ids = np.random.default_rng(0).integers(0, 11, 307)
    model = tied_model(11, seed=0)
    new = kerbs("inner_product", split=0.5)(model, ids)
    states, targets = contexts_of(new, ids)
    logits = states @ np.array(new.head.label_embeddings).T + np.array(new.head.bias)
    for word in range(11):
        first, second = logits[:, np.array(new.head.allocation.sense_to_word) == word].T
        difference = first - second
        assert difference[targets == word].mean() == pytest.approx(0, abs=1e-3)
        assert difference.std() == pytest.approx(1.0, rel=1e-3)


def test_preference_tuning(tmp_path):
    file = tmp_path / "found.json"
    run("preference_tuning", "--sizes", "2,13,101,7", "--rounds", 1, "--json", file)
    found = json.loads(file.read_text())
    assert "python -m benchmarks.preference_tuning --sizes 2,13,101,7" in found["command"]
    (row,) = found["tables"]["step"]["rows"]  # the losses of both methods agree
    assert row[0] == "2 × 13 × 101 × 7"
    assert row[3] > 0


def test_adaptation_study(tmp_path):
    write_corpus(tmp_path / "text")
    sizes = ["backbone.embedding_dim=7", "backbone.units=11", "backbone.num_layers=1"]
    options = ["--options", "training.epochs=1", "data.batch_size=3", *sizes]
    words = ["--data", tmp_path / "text", "--folder", tmp_path, "--json", tmp_path / "found.json"]
    words += ["--recipes", "small-tied", "--seeds", 0, "--search-tokens", 50, *options]
    run("adaptation_study", *words, "--tuning", "training.epochs=2")
    for name, epochs in (("small-tied-0", 1), ("small-tied-0-fine-tuned", 2)):
        assert len((tmp_path / name / "history.csv").read_text().splitlines()) == 1 + epochs
    found = json.loads((tmp_path / "found.json").read_text())
    rows = found["tables"]["test-perplexity"]["rows"]
    assert [row[:2] for row in rows] == [["small-tied", "trained"], ["small-tied", "fine-tuned"]]
    for row in rows:
        assert len(row) == 7 and len(set(row[2:])) > 1 and min(row[2:]) > 1


def test_tatoeba_pairs(tmp_path):
    texts = {
        "tatoeba.de": "Hallo.\nEin Haus.\nHi.\nDas Haus.\n",
        "tatoeba.en": "Hello.\nA house.\nhello.\nThe house.\n",
        "valid.de": "das ist &quot; gut &quot; .\n",
        "valid.en": "that &apos;s &quot; good &quot; .\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    output = run("tatoeba_pairs", "--tatoeba", tmp_path, "--iwslt", tmp_path,
                 "--folder", tmp_path / "pairs", "--valid", 1)  # fmt: skip
    assert "test: 1 pairs" in output
    train, valid = (
        (tmp_path / f"pairs/{x}.en").read_text().split("\n") for x in ("train", "valid")
    )
    assert sorted([*train, *valid]) == ["", "", "a house.", "hello.", "hello.", "the house."]
    assert set(train) & set(valid) == {""}  # whatever their case
    assert (tmp_path / "pairs/test.en").read_text() == 'that\'s "good".\n'
    assert (tmp_path / "pairs/test.de").read_text() == 'das ist "gut".\n'


def test_language_model_step():
    output = run("language_model_step", "--batch", 2, "--length", 3, "--steps", 1, "--warmup", 1,
                 "--heads", "tied", "--without-torch")  # fmt: skip
    assert min(figures(output, "keras_drill tied")) > 0


def test_output_layers():
    output = run("output_layers", "--sizes", "101,2,3", "--rounds", 1, "--heads", "kerbs",
                 "--what", "step", "efficiency")  # fmt: skip
    step, efficiency = output.split("head alone")
    seconds, ratio, operations = figures(step, "kerbs")
    assert seconds > 0 and ratio > 0 and operations == 1.0  # but for 0.001
    assert figures(efficiency, "kerbs")[-1] > 0


def test_decoding():
    output = run("decoding", "--sentences", 3, "--batch", 3, "--vocabulary", 101, "--width", 16,
                 "--layers", 1, "--rounds", 1, "--ctranslate2", sys.executable)  # fmt: skip
    assert min(figures(output, "keras_drill XLA")) > 0
    assert "CTranslate2: 100% of best beams are the same" in output


def test_sense_reallocation():
    output = run("sense_reallocation", "--vocabulary", 503, "--width", 7, "--step-vocabulary", 101,
                 "--batch", 2, 3, "--units", 11, "--rounds", 1)  # fmt: skip
    assert re.search(r"\d\.\d", output)


def test_unseen_words(tmp_path):
    from tests.workbench.sense_induction.tiny_encoder import MONEY, RIVER, save_preset

    words = np.array(["<unk>", *(f"{a}.{b}" for a in RIVER[:5] for b in RIVER + MONEY)])
    for split, length in {"train": 3000, "valid": 300, "test": 900}.items():
        drawn = np.random.default_rng(length).choice(words, length)
        (tmp_path / f"{split}.txt").write_text(" ".join(drawn))
    (tmp_path / "words.tsv").write_text(f"{RIVER[0]}.{MONEY[0]}\t{RIVER[1]} {MONEY[1]}\n")
    models = ["tied", "bytes", "encoder", "definitions, dropout 0.3"]
    arguments = ["--data", tmp_path, "--folder", tmp_path / "runs", "--seeds", 0, "--epochs", 1,
                 "--held-out", 0.1, "--first-rank", 20, "--models", *models,
                 "--encoder", save_preset(tmp_path / "bert"),
                 "--definitions", tmp_path / "words.tsv"]  # fmt: skip
    output = run("unseen_words", *arguments)
    output = output[output.index("| |") :]
    described = [f"{what}{where}" for what in models[1:] for where in ("", ", in <unk>")]
    for row in ("spread", "mean embedding", *described):
        held_out, among, other, perplexity, *_ = figures(output, f"{row} |")[::2]
        assert max(held_out, among, other) < 0 and 1 < perplexity < 10_000


def test_wordnet_definitions(tmp_path):
    glosses = [' | a fruit; "an apple a day"  ', " | move fast  ", " | more; less  "]
    for name, gloss in zip(("noun", "verb", "adj", "adv"), [*glosses, " | unused"], strict=True):
        (tmp_path / f"data.{name}").write_text(f"header\n{gloss}\n")
    senses = ["apple%1:13:00:: 7 1 3", "run%1:13:00:: 7 2 5", "run%2:38:00:: 7 1 9",
              "greater%5:00:00:: 7 1 0"]  # fmt: skip
    (tmp_path / "index.sense").write_text("".join(f"{line}\n" for line in senses))
    (tmp_path / "train.txt").write_text("apples run greater unknown <unk>\n")
    file = tmp_path / "words.tsv"
    output = run("wordnet_definitions", "--dict", tmp_path, "--data", tmp_path, "--file", file)
    assert "3 of 5 words" in output
    assert file.read_text() == "apples\ta fruit\ngreater\tmore; less\nrun\tmove fast\n"


def test_synthetic_senses(tmp_path):
    file = tmp_path / "found.json"
    output = run("synthetic_senses", "--seeds", 1, "--steps", 100, "--moved", "near", "--usage",
                 "posterior", "probability", "--policies", "none", "certain sense, 0.6",
                 "--json", file)  # fmt: skip
    many, one, *_ = figures(output, "none")
    assert (many, one) == (1, 0)  # nothing moves: every word keeps its two or three senses
    table = json.loads(file.read_text())["tables"]["usage"]
    assert [row[:2] for row in table["rows"]] == [
        ["none", "posterior"],
        ["certain sense, 0.6", "posterior"],
        ["certain sense, 0.6", "probability"],
    ]
    assert figures(output, "certain sense, 0.6") == table["rows"][1][2:]


def test_sense_induction(tmp_path):
    from tests.workbench.sense_induction.tiny_encoder import save_preset, text

    preset = save_preset(tmp_path / "tiny")
    lines, senses = text(90)
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\nthe shore near the vault" * 20)
    for noun in ("bank", "pool"):  # one of the 13, and one that is held back
        folder = tmp_path / "nouns" / noun
        folder.mkdir(parents=True)
        for split, part in (("train", slice(60)), ("test", slice(60, 90))):
            data = [f"4\t{line.replace('bank', noun).replace('.', ' .')}" for line in lines[part]]
            (folder / f"{split}.data.txt").write_text("\n".join(data))
            (folder / f"{split}.gold.txt").write_text("\n".join(map(str, senses[part])))
    pairs = [("fish", "mud", "T"), ("fish", "cash", "F"), ("loan", "debt", "T")]
    for split in ("dev", "test"):
        data = [f"bank\tN\t1-0\tthe bank with {a}\tbank near {b}" for a, b, _ in pairs]
        (tmp_path / f"{split}.data.txt").write_text("\n".join(data))
        (tmp_path / f"{split}.gold.txt").write_text("\n".join(answer for *_, answer in pairs))
    words = ("--encoder", preset, "--data-dir", tmp_path / "nouns", "--wikitext", tmp_path,
             "--wic", tmp_path, "--folder", tmp_path / "kept", "--methods")  # fmt: skip
    output = run("sense_induction", *words, 0, 2, 3, 11, 41)
    for table in output.split("1 words, held back:"):
        assert figures(table, "kerbs |")[0] > 0.8  # the text tells them apart
    assert len(list((tmp_path / "kept" / "results").glob("*/*/*.json"))) == 9
    assert "evaluated are 3 of 3 development" in output and figures(output, "same argmax, mean")
    again = run("sense_induction", *words, 3, "--json", tmp_path / "found.json")
    assert figures(again, "kerbs |")[:2] == figures(output, "kerbs |")[:2]
    table = json.loads((tmp_path / "found.json").read_text())["tables"]["v-measure"]
    assert table["columns"][:3] == ["method", "chosen", "held back"]
    ((name, chosen, *_),) = table["rows"]
    assert name == "kerbs" and float(chosen.split()[0]) == figures(again, "kerbs |")[0]
    assert "seed 0:" in output and "seed 0:" not in again


def test_compare_recipes(tmp_path):
    from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs

    pairs = write_pairs(tmp_path / "text")
    (tmp_path / "tiny.toml").write_text(tiny_pairs_config(pairs, training_epochs=1).to_toml())
    words = ("--data", pairs, "--folder", tmp_path / "runs", "--recipes", tmp_path / "tiny.toml")
    output = run("compare_recipes", *words, "--seeds", 3, "--options", "head.kind=drill")
    assert len(figures(output, "tiny-3")) >= 4
    assert 'kind = "drill"' in (tmp_path / "runs" / "tiny-3" / "config.toml").read_text()
    again = run("compare_recipes", *words, "--seeds", 3, 5)
    assert figures(again, "tiny-3") == figures(output, "tiny-3")
    assert again.count("epoch 1/1  done") == 1  # of the new seed
    assert again.count(" ± ") >= 2 and "seeds" not in output  # one is no mean
    file = tmp_path / "found.json"
    change = "head.kind=softmax head.use_bias=true"
    varied = run("compare_recipes", *words, "--seeds", 3, "--vary", change, "--json", file)
    assert figures(varied, "tiny-3") == figures(output, "tiny-3")  # as it is, for comparison
    name = "tiny-head.kind=softmax-head.use_bias=true"
    changed = (tmp_path / "runs" / f"{name}-3" / "config.toml").read_text()
    assert 'kind = "softmax"' in changed and "use_bias = true" in changed
    table = json.loads(file.read_text())["tables"]["means"]
    rows = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    difference = rows[name]["test ppl"] - rows["tiny"]["test ppl"]
    assert rows[name]["test ppl beyond tiny"] == pytest.approx(difference, abs=0.02) != 0


def test_exported_translations(tmp_path):
    from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs

    pairs = write_pairs(tmp_path / "text")
    config = tiny_pairs_config(
        pairs, backbone_kind="transformer", head_kind="drill", training_epochs=6
    )
    (tmp_path / "tiny.toml").write_text(config.to_toml())
    run("compare_recipes", "--data", pairs, "--folder", tmp_path, "--recipes",
        tmp_path / "tiny.toml")  # fmt: skip
    file = tmp_path / "found.json"
    run("exported_translations", tmp_path / "tiny-0", "--data", pairs, "--rounds", 1, "--batch", 3,
        "--json", file)  # fmt: skip
    tables = json.loads(file.read_text())["tables"]
    programs = ["Python", "SavedModel", "CTranslate2", "CTranslate2, int8"]
    rows = tables["differences"]["rows"]
    assert [row[1] for row in rows] == programs * 3
    greedy = dict(zip(programs, rows, strict=False))
    assert greedy["Python"][2:6] == [None] * 4
    assert greedy["SavedModel"][2:5] == greedy["CTranslate2"][2:5] == [0, 0, 0]
    assert greedy["CTranslate2"][5] < 1e-3 and greedy["CTranslate2"][6] == greedy["Python"][6] > 1
    assert [row[0] for row in tables["costs"]["rows"]] == programs
    assert min(row[-1] for row in tables["costs"]["rows"]) > 0


def test_label_encoder_study(tmp_path):
    text = tmp_path / "text"
    text.mkdir()
    rng = np.random.default_rng(5)
    for split, lines in {"train": 160, "valid": 100, "test": 100}.items():
        words = rng.choice(list("abcdefg"), (lines, 11))
        (text / f"{split}.txt").write_text("".join(" ".join(line) + "\n" for line in words))
    words = ("--data", text, "--folder", tmp_path / "study", "--shares", 0.5, "--trials", 1,
             "--families", "tied", "drill",
             "--optimizer", "adam-cosine", "--epochs", 1)  # fmt: skip
    first = run("label_encoder_study", *words, "--seeds", 1)
    assert len(figures(first, "tied")) == 2
    again = run("label_encoder_study", *words, "--seeds", 2)
    assert again.count("epoch 1/1  done") == 2  # one more seed of each, and nothing twice
    assert len(figures(again, "drill")) == 5  # its multiplier, means and intervals
    folder = tmp_path / "study" / "small-adam-cosine-0.5"
    assert 'schedule = "cosine"' in (folder / "drill-0-1" / "config.toml").read_text()
    tables = (folder / "tables.md").read_text()
    assert tables.strip() in again and "| drill |" in tables.split("nats saved")[1]
    larger = run("label_encoder_study", *words, "--seeds", 1, "--multiplier", 0.1)
    assert larger.count("epoch 1/1  done") == 1 and "learning_rate_multiplier 0.1 |" in larger
    assert "multiplier = 0.1 " in (folder / "drill@0.1-0-0" / "config.toml").read_text()
    kept = (tmp_path / "study" / "text-0.5" / "train.txt").read_text().splitlines()
    assert kept == (text / "train.txt").read_text().splitlines()[:80]


def test_translation_training(tmp_path, capsys):
    """What JoeyNMT is told of a run; what it answers is put back in order."""
    from types import SimpleNamespace

    from benchmarks.translation_training import Run, joeynmt_model, report_scores, write_sources
    from tests.workbench.training.tiny_pairs import tiny_pairs_config, write_pairs

    pairs = write_pairs(tmp_path / "text")
    config = tiny_pairs_config(pairs, training_epochs=1)
    (tmp_path / "tiny.toml").write_text(config.to_toml())
    run("compare_recipes", "--data", pairs, "--folder", tmp_path, "--seeds", 0, "--options",
        "head.kind=tied", "backbone.units=14", "--recipes", tmp_path / "tiny.toml")  # fmt: skip
    trained = Run(SimpleNamespace(run=tmp_path / "tiny-0", data=None, seed=3))
    count = trained.write_batches(tmp_path / "epoch.npz", 0)
    assert count == trained.batches.num_targets
    trained.write_settings(tmp_path)
    rates = json.loads((tmp_path / "settings.json").read_text())["learning_rates"]
    assert len(rates) == trained.batches.num_batches
    order = write_sources(trained, tmp_path)
    test = trained.task.evaluation_batches(trained.vocabulary, trained.texts["test"])
    right = {f"{i:04}": labels.numpy() for i, (_, labels, _) in enumerate(test.dataset())}
    np.savez(tmp_path / "answers.npz", **right)
    report_scores(trained, tmp_path, order)
    assert "BLEU 100.00" in capsys.readouterr().out
    sides = joeynmt_model(trained.config.backbone.__class__(kind="transformer"))
    assert sides["encoder"]["layer_norm"] == "pre"


def test_pipeline(tmp_path):
    from tests.workbench.training.tiny import write_corpus

    output = run("pipeline", "--data", write_corpus(tmp_path / "text"), "--rounds", 1,
                 "--megabytes", 1, "--vocabulary", 101)  # fmt: skip
    assert len(figures(output, "both")) == 2  # of so small a text they may be 0.0
    assert min(figures(output, "1 MB generated")[1:2]) > 0 and "peak memory" in output


def test_serving():
    output = run("serving", "--vocabulary", 53, "--width", 5, "--units", 7, "--words", 3,
                 "--depth", 2, "--rounds", 1, "--requests", 6, "--concurrency", 3)  # fmt: skip
    milliseconds, ratio, score, ratio_of_score = figures(output, "DRILL, unfolded")
    assert min(milliseconds, ratio, score, ratio_of_score) > 0
    assert min(figures(output, "DRILL, folded, score")) > 0
    assert figures(output, "drill, without warm-up requests")[1] == 0  # seconds to warm up


def test_scaling():
    """The bytes of the traced graph are those of the weights; steps and the projection are told."""
    sizes = ("--rows", 2, "--length", 3, "--units", 7, "--width", 5, "--vocabulary", 53)
    output = run("scaling", "--rounds", 1, "--steps", 5, *sizes, "--sizes", 53, "--heads", "tied")
    for way in ("one device, 1 thread", "2 replicas", "2 workers, 1 thread each"):
        assert min(figures(output, way)) > 0
    counted, weights = figures(output, "tied ")
    assert counted == weights > 0
    assert figures(output.split("projection")[1], "drill")[-1] == 1  # alone


def test_checkpointing():
    output = run("checkpointing", "--every", 3, "--rounds", 1, "--vocabulary", 53)
    assert min(figures(output, "waits")) > 0
    assert min(figures(output, "with one every 200 steps")) > 0


def test_large_texts(tmp_path):
    output = run("large_texts", "--read", 1, "--train", 1, "--folder", tmp_path)
    assert [len(figures(output, f"{what:5} {1:8} MB")) for what in ("read", "train")] == [2, 2]
    assert not list(tmp_path.iterdir())
