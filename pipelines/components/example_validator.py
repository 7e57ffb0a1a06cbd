"""ExampleValidator: finds anomalies, expectations of the schema that examples do not meet."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from keras_drill.workbench.tasks.config.option import suggest
from keras_drill.workbench.tasks.errors import ConfigError
from pipelines.components.anomaly import Anomaly
from pipelines.components.schema import SCHEMA, ColumnSchema, Schema
from pipelines.components.statistics_gen import read_statistics
from pipelines.engine.artifact_store import Artifact, ArtifactStore
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import ExampleValidatorOptions
from pipelines.page.anomalies_section import anomalies_section

ANOMALIES = "anomalies.json"
_NAMED = 3


class ExampleValidator(Component):
    """Writes `anomalies.json`: a list of `Anomaly`, errors first. Errors stop the pipeline.

    The component compares the statistics with the schema. If the examples are a span, it also
    compares the statistics with those of the newest earlier span in the store.

    Args:
        options: The options.
    """

    name = "ExampleValidator"
    version = 1
    reads = ("statistics", "schema")
    writes = "anomalies"

    def __init__(
        self,
        options: ExampleValidatorOptions = ExampleValidatorOptions(),  # noqa: B008
    ):
        super().__init__(options)
        known = ["columns", *(field.name for field in dataclasses.fields(ColumnSchema))]
        for name in options.allow:
            if name not in known:
                raise ConfigError(
                    f"option example_validator.allow cannot be {name!r}{suggest(name, known)}"
                )

    def resolve(self, store: ArtifactStore, made: Mapping[str, Artifact]) -> dict[str, Artifact]:
        span = read_statistics(made["statistics"].path)["span"]
        if span is None:
            return {}
        spans = [(read_statistics(each.path)["span"], each) for each in store.all("statistics")]
        before = [pair for pair in spans if pair[0] is not None and pair[0] < span]
        if not before:
            return {}
        newest = max(number for number, _ in before)
        return {"earlier_statistics": [each for number, each in before if number == newest][-1]}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        statistics = read_statistics(inputs["statistics"])
        schema = Schema.load(inputs["schema"] / SCHEMA)
        anomalies = list(_against_schema(statistics["columns"], schema))
        if "earlier_statistics" in inputs:
            earlier = read_statistics(inputs["earlier_statistics"])
            anomalies += _drift(statistics["columns"], earlier, schema)
        anomalies = [
            dataclasses.replace(each, severity="warning")
            if each.expectation in self.options.allow
            else each
            for each in anomalies
        ]
        anomalies.sort(key=lambda each: each.severity)
        told = [dataclasses.asdict(each) for each in anomalies]
        text = json.dumps(told, indent=2, ensure_ascii=False)
        (output / ANOMALIES).write_text(text + "\n", encoding="utf-8")
        errors = sum(each.severity == "error" for each in anomalies)
        return {"errors": errors, "warnings": len(anomalies) - errors}

    def stopping_reason(self, artifact: Path) -> str | None:
        errors = [each for each in read_anomalies(artifact) if each.severity == "error"]
        if not errors:
            return None
        names = " ".join(
            f"--example_validator.allow {name}"
            for name in dict.fromkeys(each.expectation for each in errors)
        )
        return (
            "the examples do not match the schema:\n"
            + "\n".join(f"  {each.message}" for each in errors)
            + f"\nTo continue, correct the data, allow the anomalies with {names}, or give another "
            f"schema with --schema FILE (the current schema is {SCHEMA} in artifacts/schema)"
        )

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        return [anomalies_section(read_anomalies(artifact))]


def read_anomalies(folder: Path) -> list[Anomaly]:
    """Reads the anomalies that `ExampleValidator` wrote."""
    told = json.loads((folder / ANOMALIES).read_text(encoding="utf-8"))
    return [Anomaly(**each) for each in told]


def _against_schema(columns: Mapping[str, Mapping], schema: Schema) -> Iterator[Anomaly]:
    for name in [*schema.columns, *columns]:
        if name not in columns or name not in schema.columns:
            where = "the examples have" if name not in columns else "the schema has"
            yield Anomaly("columns", "error", name, "", f"{where} no column {name!r}")
    for name, splits in columns.items():
        if name not in schema.columns:
            continue
        for split, statistics in splits.items():
            for expectation, severity, message in _of_column(statistics, schema.columns[name]):
                where = f"{split} text" if len(columns) == 1 else f"{name}s of the {split} text"
                yield Anomaly(expectation, severity, name, split, f"{where}: {message}")


def _of_column(told: Mapping[str, Any], schema: ColumnSchema) -> Iterator[tuple[str, str, str]]:
    """Yields the expectation, the severity, and the message of each anomaly of a column."""
    others = {name: share for name, share in told["scripts"].items() if name not in schema.scripts}
    if sum(others.values()) > schema.max_other_scripts:
        names = ", ".join(f"{name} {share:.1%}" for name, share in list(others.items())[:_NAMED])
        yield (
            "max_other_scripts",
            "error",
            f"letters of unexpected scripts ({names}); expected {', '.join(schema.scripts)}, and "
            f"at most {schema.max_other_scripts:.1%} of other scripts",
        )
    shares = (
        ("empty_share", "max_empty", "error", "of the lines are empty"),
        ("duplicate_share", "max_duplicates", "error", "of the lines repeat an earlier line"),
        ("unseen_share", "max_unseen", "error", "of the tokens are not in the training text"),
        ("in_train_share", "max_in_train", "error", "of the lines are also in the training text"),
    )
    for name, expectation, severity, what in shares:
        limit = getattr(schema, expectation)
        if told.get(name, 0) > limit:
            yield expectation, severity, f"{told[name]:.1%} {what}, expected at most {limit:.1%}"
    if told["control_characters"] > schema.max_control_characters:
        yield (
            "max_control_characters",
            "warning",
            f"{told['control_characters']:,} control or replacement characters (U+FFFD), expected "
            f"at most {schema.max_control_characters:,}",
        )
    if told["max_length"] > schema.max_length:
        yield (
            "max_length",
            "warning",
            f"the longest line has {told['max_length']:,} tokens, expected at most "
            f"{schema.max_length:,}",
        )


def _drift(
    columns: Mapping[str, Mapping], earlier: Mapping[str, Any], schema: Schema
) -> Iterator[Anomaly]:
    for name, splits in columns.items():
        if name not in schema.columns or name not in earlier["columns"]:
            continue
        now, before = (
            dict(each["train"]["frequent_tokens"]) for each in (splits, earlier["columns"][name])
        )
        distance, limit = distribution_distance(now, before), schema.columns[name].max_drift
        if distance > limit:
            words = sorted(
                now.keys() | before.keys(),
                key=lambda token: (-abs(now.get(token, 0) - before.get(token, 0)), token),
            )[:_NAMED]
            changes = ", ".join(
                f"{word!r} from {before.get(word, 0):.2%} to {now.get(word, 0):.2%}"
                for word in words
            )
            message = (
                "the Jensen-Shannon distance between the token frequencies and those of span "
                f"{earlier['span']} is {distance:.2f}, expected at most {limit:.2f}; largest "
                f"changes: {changes}"
            )
            yield Anomaly("max_drift", "error", name, "train", message)


def distribution_distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Computes the Jensen-Shannon distance of two distributions of tokens, from 0 to 1.

    If the shares of a distribution do not sum to 1, the rest counts as one more token.

    Example:

    >>> distribution_distance({"a": 1.0}, {"b": 1.0}), distribution_distance({"a": 1}, {"a": 1})
    (1.0, 0.0)
    """
    divergence = 0.0
    pairs = [(one.get(token, 0.0), other.get(token, 0.0)) for token in one.keys() | other.keys()]
    pairs.append((max(0.0, 1 - sum(one.values())), max(0.0, 1 - sum(other.values()))))
    for p, q in pairs:
        middle = (p + q) / 2
        divergence += sum(x / 2 * math.log2(x / middle) for x in (p, q) if x > 0)
    return math.sqrt(max(0.0, min(divergence, 1.0)))
