"""ExampleGen: converts a corpus to examples."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from keras_drill.data import Lines
from keras_drill.data.prefetch import prefetch
from keras_drill.data.write_examples import ExampleWriter
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.task import Task
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import ExampleGenOptions

DESCRIPTION = "description.json"


class ExampleGen(Component):
    """Writes a corpus as an `ExampleFolder`: sharded, gzipped TFRecords of `tf.Example`.

    A corpus is any value of `keras-drill train --data`, also a data set of tensorflow-datasets. The
    component keeps the splits of the corpus. A corpus without splits is split by a hash of its
    lines. So equal lines are in the same split in every span (numbered part of the data).

    Args:
        task: Task that reads the corpus.
        data: Path or name of the corpus.
        span: Number of the span; `None` if the corpus is not a span.
        options: The options.
    """

    name = "ExampleGen"
    version = 1
    writes = "examples"

    def __init__(
        self,
        task: Task,
        data: str,
        span: int | None = None,
        options: ExampleGenOptions = ExampleGenOptions(),  # noqa: B008  it is frozen
    ):
        super().__init__(options)
        self.task = task
        self.data = data
        self.span = span

    def settings(self) -> dict:
        corpus = self.task.read_columns(self.data, cut_by_content=True)
        told = {
            split: {column: lines.fingerprint() for column, lines in columns.items()}
            for split, columns in corpus.items()
        }
        return {**super().settings(), "corpus": told, "span": self.span}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        facts: Facts = {} if self.span is None else {"span": self.span}
        total = num_bytes = 0
        for split, columns in self.task.read_columns(self.data, cut_by_content=True).items():
            with ExampleWriter(output, split, self.options.shard_megabytes << 20) as writer:
                for block in prefetch(_blocks(columns)):
                    writer.write(block)
                    progress(total + writer.num_examples, "examples")
            if not writer.num_examples:
                raise RunError(
                    f"no line of {self.data} is in the {split} split; give more text, or a "
                    "folder with train, valid and test text"
                )
            facts[f"{split} examples"] = writer.num_examples
            total += writer.num_examples
            num_bytes += writer.num_bytes
        facts["megabytes"] = round(num_bytes / 1e6, 3)
        description = {"columns": list(self.task.columns), "span": self.span, "examples": facts}
        (output / DESCRIPTION).write_text(json.dumps(description, indent=2, sort_keys=True) + "\n")
        return facts


def read_description(folder: Path) -> dict:
    """Reads the description that `ExampleGen` wrote: columns, span, and numbers of examples."""
    return json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))


def _blocks(columns: Mapping[str, Lines]) -> Iterator[dict[str, list[bytes]]]:
    names = list(columns)
    for blocks in zip(*(lines.blocks() for lines in columns.values()), strict=True):
        yield dict(zip(names, blocks, strict=True))
