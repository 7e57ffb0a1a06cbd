"""The base class of components."""

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from xml.etree import ElementTree

if TYPE_CHECKING:
    from pipelines.engine.artifact_store import Artifact, ArtifactStore

Facts = dict[str, Any]


class Progress(Protocol):
    """Type of the function by which a component reports its progress, as often as it likes."""

    def __call__(self, done: float, unit: str, total: float | None = None) -> None:
        """Reports progress.

        Args:
            done: Number of units that are done.
            unit: Name of the unit, such as "lines".
            total: Total number of units; `None` if unknown.
        """


class Component(abc.ABC):
    """Base class for components. A component reads artifacts, which are folders, and writes one.

    Write a component as a subclass in a separate file, for example:

        @dataclasses.dataclass(frozen=True)
        class CounterOptions:
            at_least: int = option(1, "how often a word must occur to count", minimum=1)

        class WordCounter(Component):
            name = "WordCounter"
            version = 1
            reads = ("examples",)
            writes = "word_counts"

            def __init__(self, options: CounterOptions = CounterOptions()):
                super().__init__(options)

            def run(self, inputs, output, progress):
                counts = ...  # of what is in inputs["examples"]
                (output / "counts.json").write_text(json.dumps(counts, sort_keys=True))
                return {"words": len(counts)}

    The output of `run` must depend only on the contents of its inputs, on `settings` and on
    `version`, not on time or paths. If these are unchanged, the engine uses the existing artifact.
    `run` does not depend on this engine, so that others, for example TFX, can call it.

    Errors in the user's input are `RunError`, `ConfigError`, `ValueError` or `OSError`, with a
    message that names the file and the line. The engine prefixes the message with the component's
    name.

    Args:
        options: A frozen dataclass with fields made by `keras_drill.workbench.tasks.config.option`.
            The command line accepts the options in `pipelines.options`, as `--section.key`.

    Attributes:
        name: Name of the component, as in TFX.
        version: Version of the component's code. Increase it when the same inputs give another
            artifact.
        reads: Names of the artifacts that the component reads. Earlier components write them.
        writes: Name of the artifact that the component writes.
        keeps_work: Whether `run` resumes from files that a killed call with the same inputs,
            settings and version left in `output`. If False, `output` is always empty.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    reads: tuple[str, ...] = ()
    writes: ClassVar[str]
    keeps_work: ClassVar[bool] = False

    def __init__(self, options: Any):
        self.options = options

    @abc.abstractmethod
    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        """Makes the artifact.

        Args:
            inputs: Folders of the artifacts in `reads` and from `resolve`, by name.
            output: The folder to write to. The engine publishes it after the call.
            progress: Function by which the component reports its progress.

        Returns:
            Facts about the artifact for `lineage.json`: JSON-serializable values by name. The table
            and the page show those that are text or numbers.
        """

    def settings(self) -> dict[str, Any]:
        """Returns all settings that determine the artifact, JSON-serializable.

        By default, these are the options. Components that read files outside the store add
        fingerprints of these files.
        """
        return dataclasses.asdict(self.options)

    def resolve(
        self, store: "ArtifactStore", made: Mapping[str, "Artifact"]
    ) -> dict[str, "Artifact"]:
        """Selects further inputs from the artifacts of earlier executions. By default, none.

        Args:
            store: The artifact store.
            made: The artifacts of this execution so far, by name.
        """
        return {}

    def stopping_reason(self, artifact: Path) -> str | None:
        """Returns why the pipeline must stop after this artifact, and how the user can continue.

        `None` means that the pipeline may continue. The engine calls this method for new and for
        existing artifacts.
        """
        return None

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        """Returns sections about an artifact, for the page of an execution. By default, none."""
        return []
