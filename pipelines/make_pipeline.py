"""Makes the components of a pipeline."""

import dataclasses
from pathlib import Path

from keras_drill.export.served_versions import ServedVersions
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.make_task import make_task
from pipelines.components.evaluator import Evaluator
from pipelines.components.example_gen import ExampleGen
from pipelines.components.example_validator import ExampleValidator
from pipelines.components.infra_validator import InfraValidator
from pipelines.components.pusher import Pusher
from pipelines.components.schema_gen import SchemaGen
from pipelines.components.spans import find_span
from pipelines.components.statistics_gen import StatisticsGen
from pipelines.components.trainer import Trainer
from pipelines.components.transform import Transform
from pipelines.components.tuner import Tuner
from pipelines.engine.component import Component
from pipelines.options import PipelineOptions


@dataclasses.dataclass(frozen=True)
class PipelineArguments:
    """The arguments of a pipeline.

    Args:
        config: The options of the training run, including the task.
        options: The options of the components.
        data: Path or name of the corpus, as for `keras-drill train --data`.
        span: Number of the span of the corpus; `None` for the last span.
        schema: Path of a schema file; `None` to infer the schema.
        serve_as: Name of the served model; `None` if the model will not be served.
        warm_start: Whether to start training from the last blessed model.
    """

    config: RunConfig
    options: PipelineOptions
    data: str
    span: int | None = None
    schema: str | None = None
    serve_as: str | None = None
    warm_start: bool = False


def make_pipeline(arguments: PipelineArguments) -> list[Component]:
    """Makes the components of a pipeline in order. All tasks have the same components."""
    task, options = make_task(arguments.config), arguments.options
    data, span = find_span(arguments.data, arguments.span)
    served, pusher = None, []
    if arguments.serve_as is not None:
        served = ServedVersions(Path(options.pusher.directory) / arguments.serve_as)
        pusher = [Pusher(served, arguments.data, options.pusher)]
    tuner = [Tuner(arguments.config, options.tuner)] if options.tuner.search else []
    return [
        ExampleGen(task, data, span, options.example_gen),
        StatisticsGen(task.columns, options.statistics_gen),
        SchemaGen(arguments.schema, options.schema_gen),
        ExampleValidator(options.example_validator),
        Transform(task, options.transform, arguments.warm_start),
        *tuner,
        Trainer(arguments.config, options.trainer, arguments.warm_start, tuned=bool(tuner)),
        Evaluator(task, served, options.evaluator),
        InfraValidator(task, options.infra_validator),
        *pusher,
    ]
