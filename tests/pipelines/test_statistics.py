"""Statistics against a count by hand, and what the schema makes of them."""

import collections
import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import WhitespaceTokenizer
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.make_task import make_task
from pipelines.components import line_statistics, statistics_gen
from pipelines.components.example_gen import ExampleGen
from pipelines.components.example_validator import (
    ExampleValidator,
    distribution_distance,
    read_anomalies,
)
from pipelines.components.line_statistics import LineStatistics
from pipelines.components.schema import Schema
from pipelines.components.schema_gen import SchemaGen
from pipelines.components.statistics_gen import StatisticsGen, read_statistics
from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.run_pipeline import run_pipeline
from pipelines.options import ExampleValidatorOptions, SchemaGenOptions
from tests.pipelines.corpora import tiny_task

LINES = [
    "the cat sat", "", "the cat sat", "  ", "größe ж 漢", "a b c d e f g", "the\ttab \x07 bell",
]  # fmt: skip


def statistics_of(lines, parts=2):
    statistics = LineStatistics(WhitespaceTokenizer())
    for part in np.array_split(np.array([line.encode() for line in lines], object), parts):
        statistics.add(tf.constant(part.tolist(), tf.string))
    return statistics


def test_statistics_are_those_of_a_count_by_hand():
    told = statistics_of(LINES).to_mapping()
    tokens = [line.split() for line in LINES]
    counts = collections.Counter(token for line in tokens for token in line)
    letters = [letter for letter in "".join(LINES) if letter.isalpha()]
    assert told["lines"] == 7 and told["empty_share"] == pytest.approx(2 / 7, abs=1e-6)
    assert told["bytes"] == len("".join(LINES).encode()) and told["tokens"] == counts.total()
    assert told["distinct_tokens"] == len(counts) and told["max_length"] == 7
    assert told["mean_length"] == pytest.approx(counts.total() / 7, abs=1e-3)
    assert told["length_quantiles"]["50%"] == np.median([len(line) for line in tokens])
    assert told["duplicate_share"] == pytest.approx(1 / 5)  # of the lines that are not empty
    assert told["control_characters"] == 1
    assert told["scripts"]["Cyrillic"] == pytest.approx(1 / len(letters), abs=1e-6)
    assert set(told["scripts"]) == {"Latin", "Cyrillic", "Han"}
    frequent = dict(told["frequent_tokens"])
    assert frequent == {token: pytest.approx(n / counts.total()) for token, n in counts.items()}
    assert told["frequent_tokens"][0][0] == "the"


def test_other_splits_are_compared_with_the_training_text():
    train, test = statistics_of(LINES), statistics_of(["the dog sat", "the cat sat", "a dog", ""])
    told = test.to_mapping(train)
    assert told["unseen_share"] == pytest.approx(2 / 8) and told["in_train_share"] == pytest.approx(
        1 / 3, abs=1e-6
    )


def test_samples_tell_what_all_would(monkeypatch):
    random = np.random.default_rng(5)
    lines = [f"line {number}" for number in random.integers(0, 20_000, 30_011)]
    others = [f"line {number}" for number in range(10_000)]
    whole = statistics_of(lines, 9).to_mapping(statistics_of(others))
    monkeypatch.setattr(line_statistics, "_MOST_LINES", 1000)
    monkeypatch.setattr(line_statistics, "_MOST_TOKENS", 5000)
    sampled = statistics_of(lines, 9)
    told = sampled.to_mapping(statistics_of(others))
    assert len(sampled.lines.digests) <= 1000 and len(sampled.tokens.counts) <= 5000
    assert told["duplicate_share"] == pytest.approx(whole["duplicate_share"], abs=0.06)
    assert told["in_train_share"] == pytest.approx(whole["in_train_share"], abs=0.06)
    assert told["frequent_tokens"][0] == whole["frequent_tokens"][0]


def test_distances_of_distributions():
    p, q = {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.1, "b": 0.3, "d": 0.6}
    tokens = sorted(p.keys() | q.keys())
    p_array, q_array = (np.array([each.get(t, 0.0) for t in tokens]) for each in (p, q))
    scipy_distance = pytest.importorskip("scipy.spatial.distance")
    expected = scipy_distance.jensenshannon(p_array, q_array, base=2)
    assert distribution_distance(p, q) == pytest.approx(expected)
    assert distribution_distance(p, p) == 0.0
    # What is not among the most frequent counts too.
    assert distribution_distance({"a": 0.5}, {"a": 0.5, "b": 0.5}) > 0.3


def data_half(config, data, span=None, schema=None, allow=()):
    task = make_task(config)
    return [
        ExampleGen(task, str(data), span),
        StatisticsGen(task.columns),
        SchemaGen(schema, SchemaGenOptions()),
        ExampleValidator(ExampleValidatorOptions(allow=allow)),
    ]


def write_text(folder, lines, held_out=("the old cat sees a dog .",)):
    folder.mkdir(exist_ok=True)
    for split, some in (("train", lines), ("valid", held_out), ("test", held_out)):
        (folder / f"{split}.txt").write_text("".join(f"{line}\n" for line in some))
    return folder


GOOD = [f"the {age} cat sees a dog {i} ." for i in range(30) for age in ("old", "young")]


@pytest.fixture
def config(tmp_path):
    return tiny_task("language-model", tmp_path / "unused")


def run(config, folder, *words, **more):
    return run_pipeline(data_half(config, *words, **more), ArtifactStore(folder))


def anomalies_of(folder):
    newest = ArtifactStore(folder).all("anomalies")[-1]
    return read_anomalies(newest.path)


def test_a_good_corpus_has_no_anomalies(config, tmp_path):
    execution = run(config, tmp_path / "store", write_text(tmp_path / "good", GOOD))
    examples, statistics, schema, anomalies = (step.facts for step in execution.steps)
    counts = [examples[f"{split} examples"] for split in ("train", "valid", "test")]
    assert counts == [60, 1, 1]
    assert statistics == {
        "tokens": 480, "distinct": 38, "duplicates": "0.0%", "unseen in test": "0.0%",
    }  # fmt: skip
    assert schema == {"schema": "inferred", "scripts": "Latin"}
    assert anomalies == {"errors": 0, "warnings": 0}


def test_facts_of_several_columns_have_their_names():
    train = {"tokens": 7, "distinct_tokens": 5, "duplicate_share": 0.25}
    told = {name: {"train": train, "valid": {"unseen_share": 0.5}} for name in ("source", "target")}
    assert statistics_gen._facts(told) == {
        f"{name} {what}": value
        for name in ("source", "target")
        for what, value in (
            ("tokens", 7), ("distinct", 5), ("duplicates", "25.0%"), ("unseen in valid", "50.0%"),
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "held_out", "expectation", "message"),
    [
        (["again and again"] * 40, ["x"], "max_duplicates", "97.5% of the lines repeat an"),
        ([*GOOD, *[""] * 600], GOOD[:1], "max_empty", "90.9% of the lines are empty"),
        (GOOD, ["ein Hund und ein Vogel"], "max_unseen", "100.0% of the tokens are not in the"),
        (GOOD, GOOD[:9], "max_in_train", "100.0% of the lines are also in the training text"),
        (GOOD, ["собака"], "max_other_scripts", "of unexpected scripts (Cyrillic 100.0%)"),
    ],
)
def test_what_is_bad_from_the_start_stops_the_pipeline(
    lines, held_out, expectation, message, config, tmp_path
):
    data = write_text(tmp_path / "bad", lines, held_out)
    for _ in range(2):
        with pytest.raises(RunError, match="ExampleValidator: the examples do not match") as error:
            run(config, tmp_path / "store", data)
        assert message in str(error.value)
        assert f"--example_validator.allow {expectation}" in str(error.value)
    errors = [each.expectation for each in anomalies_of(tmp_path / "store")]
    execution = run(config, tmp_path / "store", data, allow=tuple(errors))
    assert execution.steps[-1].facts["warnings"] == len(errors)


def test_warnings_do_not_stop(config, tmp_path):
    long = " ".join(f"word{i}" for i in range(10_001))
    run(config, tmp_path / "store", write_text(tmp_path / "long", [*GOOD, long, "a \x07 bell"]))
    found = {each.expectation: each.message for each in anomalies_of(tmp_path / "store")}
    assert found["max_length"].endswith("has 10,001 tokens, expected at most 10,000")
    assert "1 control or replacement characters" in found["max_control_characters"]


def test_drift_between_spans(config, tmp_path):
    store = tmp_path / "store"
    run(config, store, write_text(tmp_path / "a", GOOD), span=3)
    other = [line.replace("cat", "bird").replace("dog", "tree") for line in GOOD]
    run(config, store, write_text(tmp_path / "b", [*GOOD, *other[:3]]), span=4)
    with pytest.raises(RunError) as error:
        run(config, store, write_text(tmp_path / "c", other, ["the old bird ."]), span=9)
    assert "expected at most 0.30; largest changes: " in str(error.value)
    assert "'bird' from" in str(error.value)
    # The first span's schema holds, and spans are compared with those before them alone.
    schemas = ArtifactStore(store).all("schema")
    assert {Schema.load(each.path / "schema.json").span for each in schemas} == {3}
    run(config, store, write_text(tmp_path / "d", other, ["the old bird ."]), span=1)


def test_a_schema_that_is_given_wins(config, tmp_path):
    data = write_text(tmp_path / "good", GOOD)
    run(config, tmp_path / "store", data)
    [made] = ArtifactStore(tmp_path / "store").all("schema")
    told = json.loads((made.path / "schema.json").read_text())
    told["columns"]["text"]["max_length"] = 3
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps(told))
    execution = run(config, tmp_path / "store", data, schema=str(mine))
    assert [step.state for step in execution.steps] == ["kept", "kept", "made", "made"]
    assert execution.steps[-1].facts["warnings"] == 3
    told["columns"]["text"]["scripts"] = ["Greek"]
    mine.write_text(json.dumps(told))
    with pytest.raises(RunError, match=r"Latin 100.0%\); expected Greek"):
        run(config, tmp_path / "store", data, schema=str(mine))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "mine.json, line 1: expected JSON"),
        ("[]", 'mine.json: expected an object with the key "columns"'),
        ('{"columns": {"text": {"max_lenth": 1}}}', "did you mean 'max_length'"),
        ('{"columns": {"text": {}}}', "column 'text' must have the fields ['"),
        ('{"columns": {"text": 3}}', "column 'text' must be an object"),
    ],
)
def test_a_bad_schema_is_named(text, message, config, tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.json") as error:
        Schema.load(mine)
    assert message in str(error.value)
    with pytest.raises(RunError, match=r"^SchemaGen: "):
        run(config, tmp_path / "store", write_text(tmp_path / "good", GOOD), schema=str(mine))


def test_a_schema_comes_back(tmp_path, config):
    run(config, tmp_path / "store", write_text(tmp_path / "good", GOOD), span=2)
    [made] = ArtifactStore(tmp_path / "store").all("schema")
    schema = Schema.load(made.path / "schema.json")
    schema.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (made.path / "schema.json").read_text()
    values = dataclasses.asdict(schema.columns["text"])
    values["max_empty"] = "much"
    told = {"columns": {"text": values}}
    (tmp_path / "bad.json").write_text(json.dumps(told))
    with pytest.raises(ConfigError, match=r'must be a number of at least 0\. Received: "much"'):
        Schema.load(tmp_path / "bad.json")


def test_the_columns_of_pairs_have_their_own_statistics(tmp_path):
    pairs = tiny_task("translation", tmp_path / "pairs")
    run_pipeline(data_half(pairs, pairs.data.path, allow=("max_duplicates", "max_in_train")),
                 ArtifactStore(tmp_path / "store"))  # fmt: skip
    [made] = ArtifactStore(tmp_path / "store").all("statistics")
    columns = read_statistics(made.path)["columns"]
    assert list(columns) == ["source", "target"]
    assert "Hund" in dict(columns["source"]["train"]["frequent_tokens"])
    assert "dog" in dict(columns["target"]["train"]["frequent_tokens"])
