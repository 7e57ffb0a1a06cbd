"""Makes a pipeline of standard TFX components that use the functions of the tasks."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow_model_analysis as tfma
from tfx import v1 as tfx

from keras_drill.workbench.tasks.config import RunConfig
from pipelines.tfx.example_gen import corpus_example_gen
from pipelines.tfx.settings import Settings


@dataclasses.dataclass(frozen=True)
class Place:
    """Paths and limits of a pipeline.

    Args:
        name: Name of the pipeline.
        root: Folder of the artifacts, which all workers must be able to reach.
        serve_in: Folder for the versions of the served model.
        worst: Maximum perplexity of a model that may be served (a blessed model).
    """

    name: str
    root: str
    serve_in: str
    worst: float = 1e5


def make_pipeline(
    config: RunConfig,
    data: str,
    splits: Sequence[str],
    place: Place,
    metadata: Any = None,
    beam_arguments: Sequence[str] = (),
) -> tfx.dsl.Pipeline:
    """Makes the pipeline from the corpus to the served model.

    Args:
        config: The options of the training run.
        data: Path of the corpus, valid on all workers.
        splits: Names of the corpus' splits, including train and valid. Models are evaluated on the
            last split.
        place: Paths and limits of the pipeline.
        metadata: Connection to TFX's metadata store; `None` if the orchestrator has its own.
        beam_arguments: Command-line arguments for Beam, such as `--runner`.
    """
    settings = Settings.make(config, data, f"{place.root}/shared")
    prepared = data_components(settings, splits)
    examples, *_, transform = prepared
    trainer = tfx.components.Trainer(
        run_fn="pipelines.tfx.trainer.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["valid"]),
        custom_config=settings.to_mapping(),
    )
    baseline = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=tfx.types.standard_artifacts.ModelBlessing),
    ).with_id("latest_blessed_model")
    evaluator = tfx.components.Evaluator(
        examples=examples.outputs["examples"],
        example_splits=[splits[-1]],
        model=trainer.outputs["model"],
        baseline_model=baseline.outputs["model"],
        eval_config=evaluation(place.worst),
    )
    pusher = tfx.components.Pusher(
        model=trainer.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(base_directory=place.serve_in)
        ),
    )
    return tfx.dsl.Pipeline(
        pipeline_name=place.name,
        pipeline_root=place.root,
        components=[*prepared, trainer, baseline, evaluator, pusher],
        metadata_connection_config=metadata,
        beam_pipeline_args=list(beam_arguments),
    )


def data_components(settings: Settings, splits: Sequence[str]) -> list[Any]:
    """Makes the components that prepare the data, from ExampleGen to Transform."""
    examples = corpus_example_gen(settings, splits)
    statistics = tfx.components.StatisticsGen(examples=examples.outputs["examples"])
    schema = tfx.components.SchemaGen(statistics=statistics.outputs["statistics"])
    validator = tfx.components.ExampleValidator(
        statistics=statistics.outputs["statistics"], schema=schema.outputs["schema"]
    )
    transform = tfx.components.Transform(
        examples=examples.outputs["examples"],
        schema=schema.outputs["schema"],
        preprocessing_fn="pipelines.tfx.transform.preprocessing_fn",
        custom_config=settings.to_mapping(),
    )
    return [examples, statistics, schema, validator, transform]


def evaluation(worst: float) -> tfma.EvalConfig:
    """Makes the criterion of the evaluation.

    A model is blessed if its perplexity is below `worst` and not above that of the baseline.
    """
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(upper_bound={"value": worst}),
        change_threshold=tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.LOWER_IS_BETTER, absolute={"value": 0.0}
        ),
    )
    metric = tfma.MetricConfig(
        class_name="Perplexity", module="pipelines.tfx.metrics", threshold=threshold
    )
    return tfma.EvalConfig(
        model_specs=[tfma.ModelSpec(signature_name="examples")],
        slicing_specs=[tfma.SlicingSpec()],
        metrics_specs=[tfma.MetricsSpec(metrics=[metric])],
    )
