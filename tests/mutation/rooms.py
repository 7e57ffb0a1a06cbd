"""The parts of the package that are mutated, and the tests that try each."""

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Room:
    """Sources and tests that belong together.

    Attributes:
        sources: A folder or modules, as patterns.
        tests: Folders and files of tests, the fastest first. Each is run in a process of its own.
        left_out: Names of modules that these tests cannot run.
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]
    left_out: tuple[str, ...] = ("__init__.py",)

    def list_modules(self, tree: Path) -> list[Path]:
        found = [path for pattern in self.sources for path in sorted(tree.glob(pattern))]
        return [path for path in found if path.name not in self.left_out]

    def holds(self, module: str) -> bool:
        return any(Path(module).match(pattern) for pattern in self.sources)

    def list_tests(self, tree: Path) -> list[str]:
        """The doctests of the sources, and the test files."""
        examples = sorted({pattern.rpartition("/")[0] for pattern in self.sources})
        files = []
        for path in self.tests:
            is_folder = (tree / path).is_dir()
            found = sorted((tree / path).rglob("test_*.py")) if is_folder else [tree / path]
            files += [file.relative_to(tree).as_posix() for file in found]
        return [*examples, *files]


def _folder(name: str, *tests: str) -> Room:
    sources = (f"keras_drill/{name}/*.py",)
    return Room(sources, (f"tests/{name}", *tests))


_HEADS = (
    "tests/output_layer",
    "tests/models/test_language_model.py",
    "tests/models/test_new_heads.py",
    "tests/conformance",
)

# What modules define when they are imported: defaults of arguments, and names by which Keras saves.
OF_DEFINITIONS = (
    "tests/conformance/test_defaults.py",
    "tests/conformance/test_registered_names.py",
)

ROOMS = {
    "scores": _folder("scores", *_HEADS),
    "compositions": Room(("keras_drill/compositions/*.py",), _HEADS),
    "label_encoders": _folder("label_encoders", *_HEADS),
    "metrics": _folder("metrics", "tests/models/test_token_accuracy.py"),
    "callbacks": _folder("callbacks"),
    "senses": Room(
        ("keras_drill/senses/*.py", "keras_drill/senses/policies/*.py"),
        (
            "tests/senses",
            "tests/callbacks/test_sense_reallocation.py",
            "tests/output_layer/test_senses_and_mixtures.py",
        ),
    ),
    "output_layer": _folder("output_layer", *_HEADS),
    "fused_loss": Room(
        ("keras_drill/fused_loss/*.py",),
        ("tests/fused_loss", *_HEADS),
        # Devices of JAX: `make test-sharded` tests these.
        ("__init__.py", "devices.py", "label_shard.py", "placement.py"),
    ),
    "ops": Room(("keras_drill/ops/*.py",), ("tests/ops", "tests/fused_loss", *_HEADS)),
    "decoding": _folder("decoding"),
    "data": _folder("data"),
    "training": Room(
        ("keras_drill/workbench/training/checkpoint*.py",),
        (
            "tests/workbench/training/test_checkpoints.py",
            "tests/workbench/training/test_checkpoint_order.py",
            "tests/workbench/training/test_full_disk.py",
        ),
    ),
    "pipelines": Room(
        ("pipelines/components/*.py",),
        (
            "tests/pipelines/test_statistics.py",
            "tests/pipelines/test_verdicts.py",
            "tests/pipelines/test_expectations.py",
            "tests/pipelines/test_query_model.py",
            "tests/pipelines/test_described_words.py",
            "tests/pipelines/test_command_line.py",
            "tests/pipelines/test_tuner.py",
            "tests/pipelines/test_examples.py",
            "tests/pipelines/test_served_models.py",
            "tests/pipelines/test_warm_start.py",
        ),
    ),
}
