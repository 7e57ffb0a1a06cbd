"""ExampleGen: converts a corpus to examples with line numbers.

Language models read lines in order, but Beam does not preserve the order. Therefore the number of
the line is a feature of each example.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from google.protobuf import wrappers_pb2
from tfx.components.example_gen.base_example_gen_executor import BaseExampleGenExecutor
from tfx.components.example_gen.component import FileBasedExampleGen
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.proto import example_gen_pb2
from tfx.utils.proto_utils import json_to_proto

from keras_drill.data.serialize_examples import serialize_examples
from pipelines.tfx.settings import LINE, Settings


def corpus_example_gen(settings: Settings, splits: Sequence[str]) -> FileBasedExampleGen:
    """Makes TFX's ExampleGen component for a corpus that a task reads from files.

    Args:
        settings: The settings, with the path of the corpus.
        splits: Names of the splits of the corpus.
    """
    path = Path(settings.data)
    is_file = path.is_file()  # a path that this machine does not see must be a folder
    told = example_gen_pb2.CustomConfig()
    told.custom_config.Pack(wrappers_pb2.StringValue(value=settings.to_json()))
    # TFX's driver uses the pattern to detect changed files. The executor reads the files by itself.
    pattern = path.name if is_file else "*"
    return FileBasedExampleGen(
        input_base=str(path.parent if is_file else path),
        input_config=example_gen_pb2.Input(
            splits=[example_gen_pb2.Input.Split(name=name, pattern=pattern) for name in splits]
        ),
        custom_config=told,
        custom_executor_spec=BeamExecutorSpec(CorpusExampleGenExecutor),
    )


class CorpusExampleGenExecutor(BaseExampleGenExecutor):
    """Reads each split with the task's function, on a separate worker."""

    def GetInputSourceToExamplePTransform(self) -> beam.PTransform:
        raise NotImplementedError("call GenerateExamplesByBeam, which reads all splits")

    def GenerateExamplesByBeam(
        self, pipeline: beam.Pipeline, exec_properties: dict[str, Any]
    ) -> dict[str, beam.pvalue.PCollection]:
        told, given = example_gen_pb2.CustomConfig(), example_gen_pb2.Input()
        json_to_proto(exec_properties["custom_config"], told)
        json_to_proto(exec_properties["input_config"], given)
        value = wrappers_pb2.StringValue()
        told.custom_config.Unpack(value)
        settings = Settings.from_json(value.value)
        return {
            name: pipeline
            | f"Split[{name}]" >> beam.Create([name])
            | f"Read[{name}]" >> beam.FlatMap(numbered_examples, settings)
            for name in (split.name for split in given.splits)
        }


def numbered_examples(split: str, settings: Settings) -> Iterator[bytes]:
    """Yields the serialized examples of a split."""
    columns = settings.task().read_columns(settings.data, cut_by_content=True)[split]
    start = 0
    for blocks in zip(*(lines.blocks() for lines in columns.values()), strict=True):
        count = len(blocks[0])
        lines = np.arange(start, start + count), np.ones(count, np.int64)
        yield from serialize_examples({**dict(zip(columns, blocks, strict=True)), LINE: lines})
        start += count
