"""The options of all components, a section each."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_drill.tasks.config.option import option


@dataclasses.dataclass(frozen=True)
class ExampleGenOptions:
    """Section `example_gen`."""

    shard_megabytes: int = option(128, "a new file begins after so much text", minimum=1)


@dataclasses.dataclass(frozen=True)
class TransformOptions:
    """Section `transform`."""

    shard_megabytes: int = option(128, "a new file begins after so many ids, in bytes", minimum=1)


@dataclasses.dataclass(frozen=True)
class PipelineOptions:
    """Options by component; a component that has options has a field here."""

    example_gen: ExampleGenOptions = dataclasses.field(default_factory=ExampleGenOptions)
    transform: TransformOptions = dataclasses.field(default_factory=TransformOptions)

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
