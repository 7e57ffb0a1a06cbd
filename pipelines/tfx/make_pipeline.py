"""A pipeline of TFX's standard components around the tasks' functions."""

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
    """Where a pipeline keeps its things.

    Args:
        name: Of the pipeline.
        root: Folder of its artifacts, which all workers must reach.
        serve_in: The model's folder, in which versions appear.
        worst: No model is blessed whose perplexity is higher.
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
    """Examples, statistics, schema, anomalies, words, model, verdict, served version.

    Args:
        config: What is trained, and how.
        data: Where the corpus is, as all workers see it.
        splits: Those of the corpus, train and valid among them; models are evaluated on the last.
        place: Where everything is kept.
        metadata: TFX's connection to its metadata; `None` where the orchestrator has its own.
        beam_arguments: Of all components on Beam, `--runner` among them.
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
    """The components of the data, examples first and words last."""
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
    """A model is blessed if its perplexity is below `worst` and no higher than the baseline's."""
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
