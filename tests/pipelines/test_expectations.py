"""What a schema allows, to the last digit: inferred from statistics, and compared with them."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from keras_drill.workbench.tasks.errors import ConfigError
from pipelines.components import line_statistics
from pipelines.components.example_validator import (
    ExampleValidator,
    distribution_distance,
    read_anomalies,
)
from pipelines.components.schema import SCHEMA, ColumnSchema, Schema
from pipelines.components.schema_gen import SchemaGen
from pipelines.components.statistics_gen import STATISTICS
from pipelines.options import ExampleValidatorOptions, SchemaGenOptions
from tests.pipelines.test_statistics import statistics_of

TRAIN = {
    "scripts": {"Latin": 0.9985, "Greek": 0.001, "Thai": 0.0005},
    "max_length": 9,
    "empty_share": 0.004,
    "duplicate_share": 0.03,
    "control_characters": 0,
    "frequent_tokens": [["a", 0.5], ["b", 0.3], ["c", 0.2]],
}
TEST = {**TRAIN, "max_length": 11, "empty_share": 0.2, "unseen_share": 0.1, "in_train_share": 0.4}
LIMITS = ColumnSchema(("Latin",), 0.03, 11, 0.2, 0.03, 2, 0.1, 0.4, 0.25)


def statistics_folder(folder, span=None, **splits):
    folder.mkdir(parents=True)
    told = {"span": span, "columns": {"text": splits}}
    (folder / STATISTICS).write_text(json.dumps(told))
    return folder


def infer(folder, options=SchemaGenOptions(), **splits):  # noqa: B008
    statistics = statistics_folder(folder / "statistics", **splits)
    facts = SchemaGen(None, options).run({"statistics": statistics}, folder, lambda *told: None)
    found = Schema.load(folder / SCHEMA).columns["text"]
    assert facts == {"schema": "inferred", "scripts": ", ".join(sorted(found.scripts))}
    return found


def test_scripts_have_an_order(tmp_path):
    names = ("Cyrillic", "Greek", "Han", "Hebrew", "Latin", "Thai")
    assert infer(tmp_path, train={**TRAIN, "scripts": dict.fromkeys(names, 1 / 6)}).scripts == names


def test_twice_of_what_there_is_may_come(tmp_path):
    found = infer(tmp_path, train=TRAIN, test=TEST)
    assert found == ColumnSchema(
        scripts=("Greek", "Latin"),
        max_other_scripts=0.01,
        max_length=32,  # the power of two that 22 fits into
        max_empty=0.4,
        max_duplicates=0.06,
        max_control_characters=0,
        max_unseen=0.2,
        max_in_train=0.5,  # the limit of the options
        max_drift=0.3,
    )


def test_a_little_may_always_come_and_never_more_than_the_options_allow(tmp_path):
    short = {**TRAIN, "max_length": 7, "empty_share": 0.0, "duplicate_share": 0.0}
    found = infer(tmp_path / "least", train=short, test={**short, "unseen_share": 0.0})
    least = (found.max_length, found.max_empty, found.max_duplicates, found.max_unseen)
    assert least == (16, 0.01, 0.05, 0.05) and found.max_in_train == 0.05
    # 16 tokens make 32 and 17 make 64; the options cut what is above.
    for longest, expected in ((16, 32), (17, 50)):
        options = SchemaGenOptions(max_length=50, max_empty=0.3)
        long = {**TEST, "max_length": longest}
        found = infer(tmp_path / f"{longest}", options, train=TRAIN, test=long)
        assert (found.max_length, found.max_empty) == (expected, 0.3)


def validate(folder, schema, now, earlier=None, **options):
    """The anomalies of a training text."""
    inputs = {"statistics": statistics_folder(folder / "now", train=now), "schema": folder}
    Schema({"text": schema}).save(folder / SCHEMA)
    if earlier is not None:
        inputs["earlier_statistics"] = statistics_folder(folder / "then", 7, train=earlier)
    validator = ExampleValidator(ExampleValidatorOptions(**options))
    facts = validator.run(inputs, folder, lambda *told: None)
    found = read_anomalies(folder)
    severities = [each.severity for each in found]
    assert facts == {name: severities.count(name[:-1]) for name in ("errors", "warnings")}
    return found


AT_THE_LIMITS = {**TEST, "scripts": {"Latin": 0.97, "Thai": 0.03}, "control_characters": 2}
BEYOND = {
    "max_other_scripts": {"scripts": {"Latin": 0.96, "Thai": 0.01, "Greek": 0.03}},
    "max_empty": {"empty_share": 0.201},
    "max_duplicates": {"duplicate_share": 0.031},
    "max_unseen": {"unseen_share": 0.101},
    "max_in_train": {"in_train_share": 0.401},
    "max_control_characters": {"control_characters": 3},
    "max_length": {"max_length": 12},
}


def test_what_reaches_a_limit_is_expected(tmp_path):
    assert validate(tmp_path, LIMITS, AT_THE_LIMITS) == []


@pytest.mark.parametrize("expectation", BEYOND)
def test_what_passes_a_limit_is_told(expectation, tmp_path):
    (found,) = validate(tmp_path, LIMITS, {**AT_THE_LIMITS, **BEYOND[expectation]})
    is_warning = expectation in ("max_control_characters", "max_length")
    assert (found.expectation, found.column, found.split) == (expectation, "text", "train")
    assert found.severity == ("warning" if is_warning else "error")


def test_errors_come_first_and_those_that_are_allowed_are_warnings(tmp_path):
    now = {**AT_THE_LIMITS, "empty_share": 0.3, "duplicate_share": 0.4, "max_length": 12}
    found = validate(tmp_path, LIMITS, now, allow=("max_empty",))
    assert [(each.expectation, each.severity) for each in found] == [
        ("max_duplicates", "error"), ("max_empty", "warning"), ("max_length", "warning"),
    ]  # fmt: skip


def test_drift_beyond_the_limit_names_the_words_that_changed_most(tmp_path):
    tokens = [["a", 0.2], ["b", 0.1], ["d", 0.1], ["c", 0.35], ["e", 0.25]]
    now = {**AT_THE_LIMITS, "frequent_tokens": tokens}
    distance = distribution_distance(dict(tokens), dict(TRAIN["frequent_tokens"]))
    for limit, number in ((distance, 0), (0.999 * distance, 1)):
        schema = dataclasses.replace(LIMITS, max_drift=limit)
        found = validate(tmp_path / str(number), schema, now, earlier=TRAIN)
        assert len(found) == number
    assert (found[0].expectation, found[0].severity) == ("max_drift", "error")
    # `b` changed by 0.2: less than `a` and `e`, more than `c` and `d`.
    assert found[0].message.endswith(
        "expected at most 0.52; largest changes: 'a' from 50.00% to 20.00%, "
        "'e' from 0.00% to 25.00%, 'b' from 30.00% to 10.00%"
    )


class Store:
    """Artifacts of statistics and schemas, in the order in which they were made."""

    def __init__(self, folder, spans):
        self.kept = {"statistics": [], "schema": []}
        for number, span in enumerate(spans):
            path = statistics_folder(folder / f"made-{number}", span, train=TRAIN)
            Schema({"text": LIMITS}, span).save(path / SCHEMA)
            for kind in self.kept.values():
                kind.append(SimpleNamespace(path=path))

    def all(self, kind):
        return self.kept[kind]


def test_a_span_is_compared_with_the_newest_before_it(tmp_path):
    store = Store(tmp_path, [3, 5, None, 5, 9, 4, 8])
    for span, validated, inferred in ((8, 3, 5), (5, 5, 5), (3, None, None), (None, None, None)):
        path = statistics_folder(tmp_path / f"span {span}", span, train=TRAIN)
        made = {"statistics": SimpleNamespace(path=path)}
        places = []
        for component in (ExampleValidator(), SchemaGen()):
            found = list(component.resolve(store, made).values())
            paths = [each.path for each in store.all("schema")]
            places.append(paths.index(found[0].path) if found else None)
        assert places == [validated, inferred]


def test_lengths_by_quantiles_and_by_bins_that_double():
    told = statistics_of([" ".join("w" * n) for n in range(1, 21)]).to_mapping()
    quantiles = {"5%": 1, "25%": 5, "50%": 10, "75%": 15, "95%": 19, "99%": 20}
    assert told["length_quantiles"] == quantiles
    assert told["length_histogram"] == [
        [0, 0, 0], [1, 1, 1], [2, 2, 1], [3, 4, 2], [5, 8, 4], [9, 16, 8], [17, 32, 4],
    ]  # fmt: skip


def test_very_long_lines_share_a_bin(monkeypatch):
    monkeypatch.setattr(line_statistics, "_LONGEST", 4)
    told = statistics_of([" ".join("w" * n) for n in range(1, 21)]).to_mapping()
    assert told["max_length"] == 20 and told["length_quantiles"]["99%"] == 4
    assert told["length_histogram"] == [[0, 0, 0], [1, 1, 1], [2, 2, 1], [3, 4, 18]]


def test_control_characters_are_those_that_no_text_should_have():
    lines = ["a\x00\x08\x0b\x1f\x7f\x9f\ufffd", "\t ~\xa0é"]
    assert statistics_of(lines).to_mapping()["control_characters"] == 7


def test_an_empty_split_has_no_shares():
    told = statistics_of(["", ""]).to_mapping(statistics_of(["a b", "c"]))
    assert (told["empty_share"], told["mean_length"]) == (1.0, 0.0)
    shares = [told[name] for name in ("duplicate_share", "unseen_share", "in_train_share")]
    assert shares == [0.0, 0.0, 0.0] and told["scripts"] == {}
    assert np.isfinite(list(told["length_quantiles"].values())).all()


def test_columns_are_those_of_the_schema(tmp_path):
    Schema({"other": LIMITS}).save(tmp_path / SCHEMA)
    now = statistics_folder(tmp_path / "now", 8, train={**AT_THE_LIMITS, "empty_share": 1.0})
    then = statistics_folder(tmp_path / "then", 7, train=TRAIN)
    inputs = {"statistics": now, "earlier_statistics": then, "schema": tmp_path}
    ExampleValidator().run(inputs, tmp_path, lambda *told: None)
    told = [(each.expectation, each.column, each.message) for each in read_anomalies(tmp_path)]
    assert told == [
        ("columns", "other", "the examples have no column 'other'"),
        ("columns", "text", "the schema has no column 'text'"),
    ]


def test_of_unknown_expectations_none_can_be_allowed():
    with pytest.raises(ConfigError, match="cannot be 'max_emty'; did you mean 'max_empty'"):
        ExampleValidator(ExampleValidatorOptions(allow=("columns", "max_emty")))
