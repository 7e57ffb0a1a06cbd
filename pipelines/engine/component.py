"""What a component of a pipeline is."""

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
    """Tells how far a component has come; may be called as often as is convenient."""

    def __call__(self, done: float, unit: str, total: float | None = None) -> None:
        """So many units are done, of so many where that is known."""


class Component(abc.ABC):
    """One step of a pipeline: it reads artifacts, which are folders, and writes one.

    A component is a subclass like this one, in a file of its own:

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

    What `run` writes must depend on the contents of its inputs, `settings` and `version` alone, not
    on time or on paths: an artifact for which they are all the same is not made again. `run` knows
    nothing of the runner, so that another one, TFX's for example, can call it.

    Errors about what the user gave are `RunError`, `ConfigError`, `ValueError` or `OSError`, with a
    message that names the file and the line; the runner puts the component's name in front.

    Args:
        options: A frozen dataclass of fields made by `keras_drill.workbench.tasks.config.option`.
            Those in `pipelines.options` are on the command line, as `--section.key`.

    Attributes:
        name: What the component is called, as in TFX.
        version: Of its code. Raise it when the same inputs give another artifact.
        reads: Names of the artifacts that it reads, which components before it write.
        writes: Name of the artifact that it writes.
        keeps_work: Whether `run` goes on with what an earlier call with the same inputs, settings
            and version, which was killed, has left in `output`. Without, it is always empty.
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
            inputs: Folders of the artifacts in `reads` and of those from `resolve`, by name.
            output: The folder to write to. It appears under its name when this returns.
            progress: To be told how far the work has come.

        Returns:
            Facts for the table, the page and `lineage.json`: names and JSON-able values. Those that
            are text or numbers are shown.
        """

    def settings(self) -> dict[str, Any]:
        """All that the artifact depends on beside inputs and code, JSON-able: here, the options.

        Components that read files from outside add fingerprints of their contents.
        """
        return dataclasses.asdict(self.options)

    def resolve(
        self, store: "ArtifactStore", made: Mapping[str, "Artifact"]
    ) -> dict[str, "Artifact"]:
        """More inputs, by name, of those that earlier executions left in the store: here, none.

        Args:
            store: The store.
            made: The artifacts of this execution so far, by name.
        """
        return {}

    def stopping_reason(self, artifact: Path) -> str | None:
        """Why the pipeline must not go on with this artifact, and how it would; `None`: it goes on.

        Asked whenever the artifact is used, also where it is not made again.
        """
        return None

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        """What an execution's page shows of an artifact; see `workbench.report.page`."""
        return []
