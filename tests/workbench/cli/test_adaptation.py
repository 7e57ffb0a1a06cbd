"""`keras-drill evaluate --dynamic --cache`: figures by other means, the search, and mistakes."""

import json
import math
import re
import shutil

import numpy as np
import pytest

from keras_drill.models import DynamicEvaluator, with_batch_size
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder

LENGTH, RATE, DECAY = 3, 0.5, 0.02
SIZE, THETA, WEIGHT = 17, 0.3, 0.2


def by_hand(folder):
    """Perplexities of dynamic evaluation in one row, and of the cache on top."""
    run = LoadedRun.load(RunFolder(folder))
    evaluator = DynamicEvaluator(with_batch_size(run.model, 1))
    found = {}
    for text in run.evaluation_texts():
        ids = text.encoded
        read = np.concatenate([[run.vocabulary.vocabulary.end_id], ids[:-1]])
        batches = [
            (read[None, i : i + LENGTH], ids[None, i : i + LENGTH])
            for i in range(0, len(ids), LENGTH)
        ]
        result = evaluator.evaluate(batches, RATE, DECAY, keep_hidden=True)
        hidden, mixed = result.hidden.astype("float64"), [result.log_probs[0]]
        for t in range(1, len(ids)):
            kept = slice(max(t - SIZE, 0), t)
            weights = np.exp(THETA * hidden[kept] @ hidden[t])
            cached = weights[ids[kept] == ids[t]].sum() / weights.sum()
            mixed.append(math.log((1 - WEIGHT) * math.exp(result.log_probs[t]) + WEIGHT * cached))
        found[text.name] = math.exp(-np.mean(mixed))
    return found


@pytest.mark.slow
def test_given_settings(folder, tmp_path, run_main):
    shutil.copytree(folder / "tied", tmp_path / "tied")
    model = (tmp_path / "tied" / "model.keras").read_bytes()
    settings = f"--dynamic-rule sgd --dynamic-rate {RATE} --dynamic-decay {DECAY} --cache"
    settings += f" --cache-size {SIZE} --cache-theta {THETA} --cache-weight {WEIGHT}"
    command = ["evaluate", tmp_path / "tied", "--dynamic", *settings.split()]
    command += ["--dynamic-length", LENGTH, "--json", tmp_path / "figures.json"]
    status, out, err = run_main(*command)
    assert status == 0, err
    (run,) = json.loads((tmp_path / "figures.json").read_text())["runs"]
    assert run["perplexities"] == pytest.approx(by_hand(tmp_path / "tied"), rel=1e-5)
    results = json.loads((tmp_path / "tied" / "results.json").read_text())
    without = run["adaptation"].pop("perplexities_without")
    assert without["test"] == pytest.approx(results["test_perplexity"], rel=1e-6)
    assert without["test"] != pytest.approx(run["perplexities"]["test"], rel=1e-3)
    assert run["adaptation"] == {
        "dynamic": {
            "rule": "sgd",
            "learning_rate": RATE,
            "decay": DECAY,
            "epsilon": None,
            "length": LENGTH,
            "rows": 1,
            "statistics_tokens": 0,
            "chosen": [],
        },
        "cache": {"size": SIZE, "theta": THETA, "weight": WEIGHT, "chosen": []},
    }
    page = re.sub(r"<[^>]+>", "", (tmp_path / "tied" / "report-dynamic-cache.html").read_text())
    for note in (
        "dynamic evaluation (sgd): learning rate 0.5, decay 0.02, segments of 3 tokens, rows: 1",
        "neural cache: size 17, theta 0.3, weight 0.2",
        f"perplexity without adaptation: valid {without['valid']:.2f}, test {without['test']:.2f}",
    ):
        assert f"tied: {note}\n" in out and note in page
    assert (tmp_path / "tied" / "model.keras").read_bytes() == model


@pytest.mark.slow
def test_settings_are_chosen_on_validation_text(drill_run, tmp_path, run_main):
    command = ["evaluate", drill_run, "--report", tmp_path / "report.html"]
    command += ["--json", tmp_path / "figures.json", "--dynamic", "--dynamic-rows", 3, "--cache"]
    status, out, err = run_main(*command, "--search-tokens", 91)
    assert status == 0, err
    (run,) = json.loads((tmp_path / "figures.json").read_text())["runs"]
    dynamic, cache = (run["adaptation"][name] for name in ("dynamic", "cache"))
    trials = re.findall(r"rate (\S+), decay (\S+): validation perplexity (\S+)$", out, re.M)
    trials = [tuple(map(float, trial)) for trial in trials]
    best = min(trials, key=lambda trial: trial[2])[2]
    assert (dynamic["learning_rate"], dynamic["decay"], best) in trials
    assert dynamic["chosen"] == ["learning_rate", "decay"] and dynamic["rule"] == "rms"
    assert dynamic["statistics_tokens"] > 500 and cache["size"] <= 90
    assert cache["chosen"] == ["size", "theta", "weight"]
    assert "chosen on the first 91 tokens of the validation text: learning rate, decay, s" in out
    assert run["perplexities"]["test"] < run["adaptation"]["perplexities_without"]["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--dynamic-rate 0.1", r"--dynamic-rate needs --dynamic: .* Received: .* 0.1"),
        ("--cache-size 5 --dynamic", "--cache-size needs --cache: add --cache.* Received"),
        (
            "--search-tokens 50",
            "--search-tokens needs --dynamic or --cache: .* Received",
        ),
        ("--dynamic --dynamic-decay 1.5", "must be at least 0 and at most 1; .* Received: 1.5"),
        ("--cache --cache-weight 1", "must be above 0 and below 1; .* Received: 1"),
        (
            "--cache --cache-size 4000 --cache-theta 0 --cache-weight 0.1",
            "--cache-size must be smaller than .* text valid has .* Received: 4,000",
        ),
        ("--cache --cache-size 30 --search-tokens 9", "Received: a cache of 30 and 9 tokens"),
    ],
)
def test_mistakes(arguments, message, folder, tmp_path, run_main):
    command = ["evaluate", folder / "tied", "--report", tmp_path / "report.html"]
    try:
        status, _, err = run_main(*command, *arguments.split())
    except SystemExit as error:  # of `argparse`
        pytest.fail(f"{error}")
    assert status in (1, 2) and re.search(message, err), err
    assert err.count("keras-drill: error:") == 1
    assert not (tmp_path / "report.html").exists()


def test_other_tasks_are_refused(tmp_path, run_main):
    (tmp_path / "config.toml").write_text('task = "translation"\n')
    (tmp_path / "model.keras").touch()
    status, _, err = run_main("evaluate", tmp_path, "--cache")
    assert status == 1
    assert re.search("are for language models: .* Received: .*, whose task is translation", err)
