"""The options of the components, one section for each component."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_drill.workbench.tasks.config.option import option


@dataclasses.dataclass(frozen=True)
class ExampleGenOptions:
    """Section `example_gen`."""

    shard_megabytes: int = option(
        128, "maximum size of a file of examples, in megabytes of text", minimum=1
    )


@dataclasses.dataclass(frozen=True)
class StatisticsGenOptions:
    """Section `statistics_gen`."""

    tokenizer: str = option(
        "whitespace",
        'tokenizer of the statistics: "whitespace", or "words", as for raw text (slower)',
        choices=("whitespace", "words"),
    )


@dataclasses.dataclass(frozen=True)
class SchemaGenOptions:
    """Section `schema_gen`: limits for an inferred schema. Shares are from 0 to 1."""

    script_share: float = option(
        0.001, "minimum share of the letters for a script to be expected", minimum=0, maximum=1
    )
    max_other_scripts: float = option(
        0.01, "maximum share of letters in unexpected scripts", minimum=0, maximum=1
    )
    max_length: int = option(10_000, "maximum number of tokens in a line", minimum=1)
    max_empty: float = option(0.8, "maximum share of empty lines", minimum=0, maximum=1)
    max_duplicates: float = option(
        0.5, "maximum share of lines that repeat an earlier line", minimum=0, maximum=1
    )
    max_control_characters: int = option(
        0, "maximum number of control and replacement characters", minimum=0
    )
    max_unseen: float = option(
        0.3,
        "maximum share of tokens of another split that are not in the training text",
        minimum=0,
        maximum=1,
    )
    max_in_train: float = option(
        0.5,
        "maximum share of lines of another split that are also in the training text",
        minimum=0,
        maximum=1,
    )
    max_drift: float = option(
        0.3,
        "maximum distance between the token frequencies of a span and of the previous span, "
        "from 0 to 1",
        minimum=0,
        maximum=1,
    )


@dataclasses.dataclass(frozen=True)
class ExampleValidatorOptions:
    """Section `example_validator`."""

    allow: tuple[str, ...] = option(
        (), "expectations of the schema that do not stop the pipeline; may be repeated"
    )


@dataclasses.dataclass(frozen=True)
class TransformOptions:
    """Section `transform`."""

    shard_megabytes: int = option(
        128, "maximum size of a file of examples, in megabytes of ids", minimum=1
    )


@dataclasses.dataclass(frozen=True)
class TunerOptions:
    """Section `tuner`. The pipeline has a tuner if `search` names an option."""

    search: tuple[str, ...] = option(
        (),
        'option to search, such as "optimizer.learning_rate 5..40 log", "head.depth 1..4" or '
        '"head.activation relu,tanh"; may be repeated',
    )
    trials: int = option(10, "number of training runs to compare", minimum=1)
    method: str = option(
        "random", 'search method: "random" or "bayesian"', choices=("random", "bayesian")
    )
    epochs: int = option(0, "maximum number of epochs of a trial; 0: as in the recipe", minimum=0)
    seed: int = option(0, "random seed of the search")


@dataclasses.dataclass(frozen=True)
class TrainerOptions:
    """Section `trainer`."""

    weights: str = option(
        "float32",
        "data type of the exported weights",
        choices=("float32", "bfloat16", "float16", "int8"),
    )
    sense_contexts: int = option(
        0,
        "maximum number of training examples of each sense to store in the exported model",
        minimum=0,
    )


@dataclasses.dataclass(frozen=True)
class EvaluatorOptions:
    """Section `evaluator`."""

    max_examples: int = option(
        2000, "number of examples of the last split to evaluate; 0: all", minimum=0
    )
    certain: bool = option(
        True, "require a significant gain: its 95 % interval must be above min_gain"
    )
    min_gain: float = option(
        0.0, "minimum gain over the served model, in percent of perplexity or points of BLEU"
    )
    max_bin_loss: float = option(
        10.0,
        "maximum significant increase in perplexity for the words of any frequency bin, in "
        "percent; 0: no limit",
        minimum=0,
    )
    max_more_unknown: float = option(
        1.0, "maximum increase in unknown words over the served model, in percent of all words"
    )
    max_perplexity: float = option(0.0, "maximum perplexity; 0: no limit", minimum=0)
    min_bleu: float = option(0.0, "minimum BLEU", minimum=0)


@dataclasses.dataclass(frozen=True)
class InfraValidatorOptions:
    """Section `infra_validator`."""

    timeout: int = option(600, "time limit to load and call the model, in seconds", minimum=1)
    examples: int = option(16, "number of examples to call each signature with", minimum=1)


@dataclasses.dataclass(frozen=True)
class PusherOptions:
    """Section `pusher`."""

    directory: str = option("saved_models", "folder of the served models")
    keep: int = option(3, "number of versions of a model to keep", minimum=1)
    licence: str = option("not stated", "licence of the model, for the model card")
    again: bool = option(False, "publish a model again that was rolled back")


@dataclasses.dataclass(frozen=True)
class PipelineOptions:
    """The options of all components, one field for each component."""

    example_gen: ExampleGenOptions = dataclasses.field(default_factory=ExampleGenOptions)
    statistics_gen: StatisticsGenOptions = dataclasses.field(default_factory=StatisticsGenOptions)
    schema_gen: SchemaGenOptions = dataclasses.field(default_factory=SchemaGenOptions)
    example_validator: ExampleValidatorOptions = dataclasses.field(
        default_factory=ExampleValidatorOptions
    )
    transform: TransformOptions = dataclasses.field(default_factory=TransformOptions)
    tuner: TunerOptions = dataclasses.field(default_factory=TunerOptions)
    trainer: TrainerOptions = dataclasses.field(default_factory=TrainerOptions)
    evaluator: EvaluatorOptions = dataclasses.field(default_factory=EvaluatorOptions)
    infra_validator: InfraValidatorOptions = dataclasses.field(
        default_factory=InfraValidatorOptions
    )
    pusher: PusherOptions = dataclasses.field(default_factory=PusherOptions)

    def replace(self, values: Mapping[str, Any]) -> "PipelineOptions":
        """Copies the options with other values, by full name, `"section.key"`."""
        sections: dict[str, dict[str, Any]] = {}
        for name, value in values.items():
            section, _, key = name.partition(".")
            sections.setdefault(section, {})[key] = value
        return dataclasses.replace(
            self,
            **{
                section: dataclasses.replace(getattr(self, section), **changes)
                for section, changes in sections.items()
            },
        )


SECTIONS: dict[str, dataclasses.Field] = {
    f"{section.name}.{field.name}": field
    for section in dataclasses.fields(PipelineOptions)
    for field in dataclasses.fields(section.type)  # type: ignore[arg-type]
}
