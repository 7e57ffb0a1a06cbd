"""The options of all components, a section each."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_drill.workbench.tasks.config.option import option


@dataclasses.dataclass(frozen=True)
class ExampleGenOptions:
    """Section `example_gen`."""

    shard_megabytes: int = option(128, "a new file begins after so much text", minimum=1)


@dataclasses.dataclass(frozen=True)
class StatisticsGenOptions:
    """Section `statistics_gen`."""

    tokenizer: str = option(
        "whitespace",
        'what counts as a token: "whitespace", or "words" as raw text has them, which is slower',
        choices=("whitespace", "words"),
    )


@dataclasses.dataclass(frozen=True)
class SchemaGenOptions:
    """Section `schema_gen`: the limits of what is inferred. Shares are from 0 to 1."""

    script_share: float = option(
        0.001, "a script is expected if so many of the letters are in it", minimum=0, maximum=1
    )
    max_other_scripts: float = option(0.01, "most letters in other scripts", minimum=0, maximum=1)
    max_length: int = option(10_000, "most tokens in a line", minimum=1)
    max_empty: float = option(0.8, "most empty lines", minimum=0, maximum=1)
    max_duplicates: float = option(
        0.5, "most lines that stand before already", minimum=0, maximum=1
    )
    max_control_characters: int = option(0, "most control and replacement characters", minimum=0)
    max_unseen: float = option(
        0.3, "most tokens of other splits that are not in the training text", minimum=0, maximum=1
    )
    max_in_train: float = option(
        0.5, "most lines of other splits that are in the training text", minimum=0, maximum=1
    )
    max_drift: float = option(
        0.3, "largest distance from the span before, from 0 to 1", minimum=0, maximum=1
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

    shard_megabytes: int = option(128, "a new file begins after so many ids, in bytes", minimum=1)


@dataclasses.dataclass(frozen=True)
class TunerOptions:
    """Section `tuner`; there is a search where options are named."""

    search: tuple[str, ...] = option(
        (),
        'an option to search, such as "optimizer.learning_rate 5..40 log", "head.depth 1..4" '
        'or "head.activation relu,tanh"; may be repeated',
    )
    trials: int = option(10, "how many trainings to compare", minimum=1)
    method: str = option("random", "how values are proposed", choices=("random", "bayesian"))
    epochs: int = option(0, "most epochs of a trial; 0: those of the recipe", minimum=0)
    seed: int = option(0, "of the proposals")


@dataclasses.dataclass(frozen=True)
class TrainerOptions:
    """Section `trainer`."""

    weights: str = option(
        "float32",
        "what the exported weights are kept in",
        choices=("float32", "bfloat16", "float16", "int8"),
    )
    sense_contexts: int = option(
        0,
        "examples of each sense to keep in the exported model, from the training text",
        minimum=0,
    )


@dataclasses.dataclass(frozen=True)
class EvaluatorOptions:
    """Section `evaluator`."""

    max_examples: int = option(
        2000, "how many examples of the last split are evaluated; 0 is all", minimum=0
    )
    certain: bool = option(
        True, "whether a gain must be more than chance, its whole 95 % interval above min_gain"
    )
    min_gain: float = option(
        0.0, "least gain over the served model: percent of perplexity, or points of BLEU"
    )
    max_bin_loss: float = option(
        10.0,
        "most percent of perplexity that words of any frequency may lose, beyond chance; 0 is any",
        minimum=0,
    )
    max_more_unknown: float = option(
        1.0, "by how many percent of the words more may be unknown than to the served model"
    )
    max_perplexity: float = option(0.0, "greatest perplexity that is let pass; 0 is any", minimum=0)
    min_bleu: float = option(0.0, "least BLEU that is let pass", minimum=0)


@dataclasses.dataclass(frozen=True)
class InfraValidatorOptions:
    """Section `infra_validator`."""

    timeout: int = option(600, "seconds that loading and asking the model may take", minimum=1)
    examples: int = option(16, "how many examples every signature is asked", minimum=1)


@dataclasses.dataclass(frozen=True)
class PusherOptions:
    """Section `pusher`."""

    directory: str = option("saved_models", "where served models are kept")
    keep: int = option(3, "how many versions are kept", minimum=1)
    licence: str = option("not stated", "of the model, for its card")
    again: bool = option(False, "whether a model that was rolled back may be pushed again")


@dataclasses.dataclass(frozen=True)
class PipelineOptions:
    """Options by component; a component that has options has a field here."""

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
        """Other values, given by full name, `"section.key"`."""
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
