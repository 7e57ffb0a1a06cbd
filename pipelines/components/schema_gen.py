"""SchemaGen: provides the schema, the expectations that the corpus must meet."""

import math
from collections.abc import Mapping
from pathlib import Path

from keras_drill.data import TextLines
from pipelines.components.schema import SCHEMA, ColumnSchema, Schema
from pipelines.components.statistics_gen import read_statistics
from pipelines.engine.artifact_store import Artifact, ArtifactStore
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import SchemaGenOptions


class SchemaGen(Component):
    """Writes `schema.json`: the user's file, the schema of an earlier span, or an inferred schema.

    An inferred schema allows twice the values of the current statistics. The options limit the
    allowed values, so that a corpus that is bad from the start does not pass. The schema of the
    first span applies to all later spans. To change the schema, pass a file, for example an edited
    copy.

    Args:
        schema: Path of a schema file to use instead; `None` to infer the schema.
        options: The options.
    """

    name = "SchemaGen"
    version = 1
    reads = ("statistics",)
    writes = "schema"

    def __init__(
        self,
        schema: str | None = None,
        options: SchemaGenOptions = SchemaGenOptions(),  # noqa: B008
    ):
        super().__init__(options)
        self.schema = schema

    def settings(self) -> dict:
        given = None if self.schema is None else TextLines(self.schema).fingerprint()
        return {**super().settings(), "schema": given}

    def resolve(self, store: ArtifactStore, made: Mapping[str, Artifact]) -> dict[str, Artifact]:
        span = read_statistics(made["statistics"].path)["span"]
        if self.schema is not None or span is None:
            return {}
        spans = [(Schema.load(each.path / SCHEMA).span, each) for each in store.all("schema")]
        before = [each for number, each in spans if number is not None and number < span]
        return {"earlier_schema": before[-1]} if before else {}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        if self.schema is not None:
            schema, source = Schema.load(Path(self.schema)), "given"
        elif "earlier_schema" in inputs:
            schema = Schema.load(inputs["earlier_schema"] / SCHEMA)
            source = f"that of span {schema.span}"
        else:
            schema, source = self._infer(read_statistics(inputs["statistics"])), "inferred"
        schema.save(output / SCHEMA)
        scripts = sorted({name for each in schema.columns.values() for name in each.scripts})
        return {"schema": source, "scripts": ", ".join(scripts)}

    def _infer(self, statistics: Mapping) -> Schema:
        columns = {
            name: self._infer_column(splits) for name, splits in statistics["columns"].items()
        }
        return Schema(columns, statistics["span"])

    def _infer_column(self, splits: Mapping[str, Mapping]) -> ColumnSchema:
        options, train = self.options, splits["train"]

        def twice(name: str, least: float, most: float) -> float:
            largest = max(each.get(name, 0.0) for each in splits.values())
            return round(min(max(2 * largest, least), most), 4)

        scripts = [
            name for name, share in train["scripts"].items() if share >= options.script_share
        ]
        longest = max(2 * max(each["max_length"] for each in splits.values()), 16)
        return ColumnSchema(
            scripts=tuple(sorted(scripts)),
            max_other_scripts=options.max_other_scripts,
            max_length=min(2 ** math.ceil(math.log2(longest)), options.max_length),
            max_empty=twice("empty_share", 0.01, options.max_empty),
            max_duplicates=twice("duplicate_share", 0.05, options.max_duplicates),
            max_control_characters=options.max_control_characters,
            max_unseen=twice("unseen_share", 0.05, options.max_unseen),
            max_in_train=twice("in_train_share", 0.05, options.max_in_train),
            max_drift=options.max_drift,
        )
