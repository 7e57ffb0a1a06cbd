"""Transform: builds the vocabulary of the model and encodes the examples as ids."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_drill.data.encoded_text import encode_blocks
from keras_drill.data.example_folder import ExampleFolder, encoding_fingerprint
from keras_drill.data.lines import Lines
from keras_drill.data.prefetch import prefetch
from keras_drill.data.serialize_examples import Ids
from keras_drill.data.word_numbers import WordNumbers
from keras_drill.data.write_examples import ExampleWriter
from keras_drill.workbench.tasks.task import RunVocabulary, Task
from pipelines.components.trainer import RUN
from pipelines.components.warm_start import WARM_START, blessed_before
from pipelines.engine.artifact_store import Artifact, ArtifactStore
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import TransformOptions


class Transform(Component):
    """Builds the vocabulary from the training text and writes the examples as word ids.

    The artifact is an `ExampleFolder` that also contains the files of the vocabulary, so
    `keras-drill train --data` accepts it. The component encodes texts with the same functions as
    exported models, so training and serving tokenize texts in the same way. If the task evaluates
    generated text, the artifact contains the texts in addition to the ids.

    A warm start keeps the vocabulary of the blessed model and appends new words to it.

    Args:
        task: Task that builds and applies the vocabulary.
        options: The options.
        warm_start: Whether training will start from the last blessed model, if there is one.
    """

    name = "Transform"
    version = 1
    reads = ("examples",)
    writes = "transformed"

    def __init__(
        self,
        task: Task,
        options: TransformOptions = TransformOptions(),  # noqa: B008
        warm_start: bool = False,
    ):
        super().__init__(options)
        self.task = task
        self.warm_start = warm_start

    def resolve(self, store: ArtifactStore, made: Mapping[str, Artifact]) -> dict[str, Artifact]:
        return blessed_before(store, made) if self.warm_start else {}

    def settings(self) -> dict[str, Any]:
        return {
            **super().settings(),
            "words": self.task.word_settings(),
            "columns": self.task.columns,
            "keeps_lines": self.task.needs_lines,
        }

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        splits = self.task.read_columns(str(inputs["examples"]))
        progress(0, "examples encoded")
        with contextlib.closing(WordNumbers(keep_in=output)) as numbers:
            if WARM_START in inputs:
                known = self.task.load_vocabulary(inputs[WARM_START] / RUN)
                run_vocabulary = self.task.grow_words(known, splits["train"], numbers)
                new = {"new words": len(run_vocabulary.tokens) - len(known.tokens)}
            else:
                run_vocabulary, new = self.task.learn_words(splits["train"], numbers), {}
            return self.write(run_vocabulary, splits, output, progress, numbers) | new

    def write(
        self,
        run_vocabulary: RunVocabulary,
        splits: Mapping[str, Mapping[str, Lines]],
        output: Path,
        progress: Progress,
        numbers: WordNumbers | None = None,
    ) -> Facts:
        """Writes the vocabulary, and the examples as word ids.

        Args:
            run_vocabulary: The vocabulary.
            splits: The texts, by split and column.
            output: Folder to write to.
            progress: Function that is called with the number of encoded examples.
            numbers: Cache of the encoded training text; `None` to encode the text here.
        """
        run_vocabulary.save(output)
        coders = self.task.coders(run_vocabulary)
        facts: Facts = {"words": len(run_vocabulary.tokens)}
        done = 0
        for split, columns in splits.items():
            tokens = unknown = 0
            with ExampleWriter(output, split, self.options.shard_megabytes << 20) as writer:
                kept = numbers if split == "train" else None
                for block in prefetch(self._blocks(columns, coders, kept)):
                    writer.write(block)
                    for column, (_, vocabulary) in coders.items():
                        ids = block[ExampleFolder.ids_of(column)][0]
                        tokens += len(ids)
                        unknown += int(np.count_nonzero(ids == vocabulary.unknown_id))
                    progress(done + writer.num_examples, "examples encoded")
            done += writer.num_examples
            facts[f"{split} tokens"] = tokens
            facts[f"{split} unknown"] = f"{unknown / max(tokens, 1):.2%}"
        ExampleFolder(output).encoded_by = encoding_fingerprint(coders)
        return facts

    def _blocks(
        self, columns: Mapping[str, Any], coders: Mapping[str, tuple], numbers: WordNumbers | None
    ) -> Iterator[dict[str, Sequence[bytes] | Ids]]:
        """Yields blocks of ids by column, and of texts by column if the task needs them."""
        parts: dict[str, Iterator] = {
            ExampleFolder.ids_of(name): numbers.encoded(vocabulary)
            if numbers is not None and numbers.kept
            else encode_blocks(columns[name], tokenizer, vocabulary)
            for name, (tokenizer, vocabulary) in coders.items()
        }
        if self.task.needs_lines:
            parts |= {name: columns[name].blocks() for name in coders}
        for blocks in zip(*parts.values(), strict=True):
            yield dict(zip(parts, blocks, strict=True))
