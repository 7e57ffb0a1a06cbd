"""What differs from task to task, as one object."""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol
from xml.etree import ElementTree

import keras
import numpy as np
import tensorflow as tf

from keras_drill.data import EncodedText, Lines, Tokenizer, Vocabulary
from keras_drill.data.example_folder import ExampleFolder, encoding_fingerprint
from keras_drill.data.word_numbers import WordNumbers
from keras_drill.decoding import BeamSearch, Sampler, Search
from keras_drill.export import ModelCard, SenseContexts, TextModel, Translator
from keras_drill.workbench.report.comparability import PerplexityBasis
from keras_drill.workbench.tasks.adaptation import Adaptation
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.describe_words import describe_words
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.evaluation_text import EvaluationText


class RunVocabulary(Protocol):
    """The words of a run: what its texts are made of, and their ids."""

    @property
    def tokens(self) -> Sequence[str]:
        """The words that the model gives probabilities to, by id."""

    @property
    def counts(self) -> Sequence[int] | None:
        """How often each of them occurs in the training text, where that is known."""

    @property
    def descriptions(self) -> np.ndarray | None:
        """`[V, ...]`, what the output layer is told of them, where labels are made of that."""

    @property
    def special_ids(self) -> Sequence[int]:
        """Ids of those that stand for something else: the unknown, the end of a line."""

    @property
    def fingerprint(self) -> str:
        """Tells whether a checkpoint was made with these words."""

    def save(self, folder: Path) -> None:
        """Writes what `Task.load_vocabulary` reads."""


class Batches(Protocol):
    """A text in batches that can be entered anywhere."""

    num_batches: int
    num_targets: int

    def dataset(self, epoch: int = 0, first_batch: int = 0) -> tf.data.Dataset:
        """The batches of an epoch: inputs, targets, and weights where not all targets count."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well a model does on the texts that it was evaluated on.

    Args:
        perplexities: By text: "valid" and "test", or the name of another text.
        scores: Other figures, more being better, by a name that says the split: `"test BLEU"`.
        signatures: How the scores were computed, by the metric's name: `"BLEU"`.
        log_probs: By text, the log-probability of each target, float `[N]`, in the order of
            `Task.target_ids`.
        notes: Sentences about how the figures were obtained, where that needs to be told.
    """

    perplexities: Mapping[str, float]
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    signatures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    log_probs: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    notes: Sequence[str] = ()

    def figures(self) -> dict[str, Any]:
        """All figures of the model on these texts, JSON-able."""
        return {
            "perplexities": dict(self.perplexities),
            "scores": dict(self.scores),
            "signatures": dict(self.signatures),
        }


class Task(abc.ABC):
    """All that a run, the command line and the report must know of what is trained.

    A *text* is one split of a corpus as ids: whatever the task makes of it. Texts are given back to
    the task that read them, and to no one else.

    Args:
        config: The options of a run.

    Attributes:
        columns: What an example of the task has, by name: a text, or a source and a target.
        needs_lines: Whether texts are evaluated as they were written, and not by their ids alone.
    """

    columns: ClassVar[tuple[str, ...]]
    needs_lines: ClassVar[bool] = False

    def __init__(self, config: RunConfig):
        self.config = config

    def read_columns(self, data: str, cut_by_content: bool = False) -> dict[str, dict[str, Lines]]:
        """The lines of a corpus to train on as they were written, by split and column.

        Args:
            data: Where the corpus is, or a folder of examples.
            cut_by_content: Whether a corpus that has no splits of its own is cut so that the same
                line is always in the same split, rather than by the places of its lines.
        """
        if not ExampleFolder.is_at(data):
            return self.read_corpus(data, cut_by_content)
        splits = self._read_examples(data)
        if "train" not in splits:
            raise RunError(
                f"the examples in {data} have no training text, only {', '.join(splits)}"
            )
        return splits

    def read_whole(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        """The lines of texts to evaluate, each as a whole, by name and column.

        Args:
            data: One path, of a file or a folder with any of the splits, or those of several files
                that are one text. Splits keep their names, other texts are named by their files.
        """
        if len(data) == 1 and ExampleFolder.is_at(data[0]):
            return self._read_examples(data[0])
        return self.read_whole_corpus(data)

    def _read_examples(self, data: str) -> dict[str, dict[str, Lines]]:
        folder = ExampleFolder(data)
        return {
            split: {column: folder.lines(split, column) for column in self.columns}
            for split in folder.splits
        }

    @abc.abstractmethod
    def read_corpus(self, data: str, cut_by_content: bool) -> dict[str, dict[str, Lines]]:
        """What `read_columns` gives of a corpus that is no folder of examples."""

    @abc.abstractmethod
    def read_whole_corpus(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        """What `read_whole` gives of paths that are no folder of examples."""

    def encode(
        self, run_vocabulary: Any, data: str, splits: Mapping[str, Mapping[str, Lines]]
    ) -> dict[str, dict[str, EncodedText]]:
        """The ids of texts by split and column, from a folder of examples where it has them.

        Args:
            run_vocabulary: The words of the run.
            data: Where the texts are: a corpus, or a folder of examples.
            splits: Their lines.
        """
        coders = self.coders(run_vocabulary)
        folder = ExampleFolder(data) if ExampleFolder.is_at(data) else None
        if folder is None or folder.encoded_by is None:
            return {
                split: {name: EncodedText.encode(columns[name], *coders[name]) for name in columns}
                for split, columns in splits.items()
            }
        if folder.encoded_by != encoding_fingerprint(coders):
            raise RunError(
                f"the examples in {data} are ids of another vocabulary or tokenizer: use the "
                "options with which the examples were encoded, or the original examples"
            )
        return {
            split: {column: folder.encoded(split, column) for column in self.columns}
            for split in splits
        }

    def make_vocabulary(self, folder: Path) -> RunVocabulary:
        """The words of a run: those in its folder, where it has begun, or those of its examples.

        Where there are none yet, they are learned from the training text, and described.
        """
        has_begun = (folder / self.config.word_files[0]).exists()
        run_vocabulary: Any = self.load_vocabulary(folder) if has_begun else self._new_words()
        descriptions = run_vocabulary.descriptions if has_begun else None
        if self.config.head.kind == "described" and descriptions is None:
            descriptions = describe_words(self.config.head.descriptions, run_vocabulary.tokens)
        return dataclasses.replace(run_vocabulary, descriptions=descriptions)

    def _new_words(self) -> RunVocabulary:
        data = self.config.data.path
        if ExampleFolder.is_at(data) and (Path(data) / self.config.word_files[0]).exists():
            return self.load_vocabulary(Path(data))
        return self.learn_words(self.read_columns(data)["train"])

    @abc.abstractmethod
    def learn_words(
        self, columns: Mapping[str, Lines], numbers: WordNumbers | None = None
    ) -> RunVocabulary:
        """The words that the options ask for.

        Args:
            columns: The training text, by column.
            numbers: Keeps the text if the words of a single column are counted; else untouched.
        """

    def grow_words(
        self, known: Any, columns: Mapping[str, Lines], numbers: WordNumbers | None = None
    ) -> RunVocabulary:
        """Words for a model that is trained on: those that it knows, and new ones after them.

        Here, those that it knows: pieces of words spell new words too.

        Args:
            known: The words of the model.
            columns: The new training text, by column.
            numbers: See `learn_words`.
        """
        return known

    @abc.abstractmethod
    def word_settings(self) -> dict[str, Any]:
        """All that `learn_words` depends on beside the text, JSON-able."""

    @abc.abstractmethod
    def coders(self, run_vocabulary: Any) -> dict[str, tuple[Tokenizer, Vocabulary]]:
        """What cuts and numbers the words of each column."""

    @abc.abstractmethod
    def load_vocabulary(self, folder: Path) -> RunVocabulary:
        """What `Words.save` wrote."""

    def read_texts(self, run_vocabulary: RunVocabulary, data: str | None = None) -> dict[str, Any]:
        """Texts to train on by split: "train", "valid", "test", as far as the corpus has them, in
        this order.

        Args:
            run_vocabulary: The words of the run.
            data: Where the corpus is; `None` is that of the run.
        """
        path = self.config.data.path if data is None else data
        splits = self.read_columns(path)
        self.warn_of_text(path, splits["train"])
        encoded = self.encode(run_vocabulary, path, splits)
        return {split: self.make_text(encoded[split], splits[split]) for split in splits}

    def evaluation_texts(
        self,
        run_vocabulary: RunVocabulary,
        data: str | Sequence[str] | None = None,
        names: Sequence[str] | None = None,
    ) -> list[EvaluationText]:
        """Texts to evaluate a model on.

        Args:
            run_vocabulary: The words of the run.
            data: Where they are, see `read_whole`; `None` is the corpus of the run, as it is split
                for training.
            names: Which of the texts; by default all but the training text, and that one where
                there is no other.

        Raises:
            RunError: There is no such text.
        """
        paths = [data] if isinstance(data, str) else data
        path = self.config.data.path if paths is None else paths[0]
        splits = self.read_columns(path) if paths is None else self.read_whole(paths)
        if names is None:
            is_alone = paths is not None and len(splits) == 1
            names = [name for name in splits if is_alone or name != "train"]
            if not names:
                raise RunError(f"{path} has no validation or test text")
        for name in names:
            if name not in splits:
                raise RunError(f"{path} has no {name} text; it has {', '.join(splits)}")
        splits = {name: splits[name] for name in names}
        if paths is not None:  # training has warned of its own corpus
            self.warn_of_text(path, next(iter(splits.values())))
        encoded = self.encode(run_vocabulary, path, splits)
        texts = []
        for name, columns in splits.items():
            targets = encoded[name][self.columns[-1]]
            texts.append(
                EvaluationText(
                    name,
                    columns,
                    self.make_text(encoded[name], columns),
                    num_lines=len(targets.line_lengths),
                    num_targets=len(targets.ids),
                )
            )
        return texts

    @abc.abstractmethod
    def make_text(self, encoded: Mapping[str, EncodedText], lines: Mapping[str, Lines]) -> Any:
        """A text of the ids of its columns and of their lines."""

    def warn_of_text(  # noqa: B027  tasks may have nothing to say
        self, data: str, columns: Mapping[str, Lines]
    ) -> None:
        """Says so where the options do not suit a text; here, nothing."""

    @abc.abstractmethod
    def fingerprint(self, texts: Mapping[str, Any]) -> str:
        """Tells whether a checkpoint was made with these texts."""

    @abc.abstractmethod
    def describe(self, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]) -> str:
        """Their sizes, in one line."""

    @abc.abstractmethod
    def explain_text(self, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]) -> str:
        """What is done to the text of a run, and which options say so, in a line or some.

        Warns where that is not what such a text needs.
        """

    @abc.abstractmethod
    def training_batches(self, run_vocabulary: RunVocabulary, text: Any) -> Batches:
        """Batches to train on. Raises `RunError` where there are none."""

    @abc.abstractmethod
    def evaluation_batches(self, run_vocabulary: RunVocabulary, text: Any) -> Batches:
        """Batches with every target of a text once."""

    @abc.abstractmethod
    def target_places(self, run_vocabulary: RunVocabulary, text: Any) -> Any:
        """Int array `[N]`: which of `target_ids` each target of the evaluation batches is."""

    @abc.abstractmethod
    def first_tokens(self, text: Any, number: int) -> Any:
        """The beginning of a text, of about so many targets."""

    @abc.abstractmethod
    def target_ids(self, text: Any) -> Any:
        """Int32 array `[N]`, the ids of a text's targets in its own order."""

    @abc.abstractmethod
    def build_model(self, run_vocabulary: RunVocabulary, num_replicas: int = 1) -> keras.Model:
        """The model with new weights, built, yet to be compiled.

        Args:
            run_vocabulary: The words of the run.
            num_replicas: Among how many replicas the rows of a batch are shared out. Raises
                `RunError` where they cannot be.
        """

    @abc.abstractmethod
    def example_batch(self, num_replicas: int = 1) -> tuple[Any, Any]:
        """A replica's inputs and targets, as small as can be, for which all variables are made."""

    @abc.abstractmethod
    def validation_loss(self, values: Mapping[str, float]) -> float:
        """The figure by which the best epoch is kept, less being better.

        Args:
            values: What the history has of an epoch.
        """

    @abc.abstractmethod
    def describe_loss(self, loss: float) -> str:
        """A value of `validation_loss` in words."""

    def validation_scores(
        self, model: keras.Model, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]
    ) -> dict[str, float]:
        """More figures of an epoch for the history, beside the loss and the metrics."""
        return {}

    @abc.abstractmethod
    def evaluate(
        self, model: keras.Model, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]
    ) -> Evaluation:
        """Evaluates a model on texts."""

    @abc.abstractmethod
    def sections(
        self,
        run_vocabularies: Sequence[RunVocabulary],
        evaluated: Mapping[str, Any],
        bases: Mapping[str, PerplexityBasis],
    ) -> list[ElementTree.Element]:
        """Sections of the report about models that were evaluated.

        Args:
            run_vocabularies: The words of each model.
            evaluated: How well each model does, by its name.
            bases: What the last perplexity of each depends on, by its name; a single model needs
                none.
        """


class AnsweringTask(Task):
    """A task whose models answer sources."""

    @abc.abstractmethod
    def make_search(self, **changes: Any) -> BeamSearch:
        """The search for the best answer, by the options, with other arguments where given."""

    @abc.abstractmethod
    def translator(
        self, model: keras.Model, run_vocabulary: Any, search: Search, **options: Any
    ) -> Translator:
        """The model with text in and text out, as it would be exported.

        Args:
            model: The model.
            run_vocabulary: The words of the run.
            search: Finds the answers, or draws them.
            **options: Other arguments of `Translator`, in place of those of the run.
        """

    @abc.abstractmethod
    def export_translator(
        self,
        model: keras.Model,
        run_vocabulary: Any,
        directory: Path,
        version: int | None,
        search: BeamSearch,
        weights: str = "float32",
        card: ModelCard | None = None,
    ) -> Path:
        """Writes it for servers; see `keras_drill.export.export_translator`."""

    @property
    @abc.abstractmethod
    def scoring(self) -> dict[str, Any]:
        """`tokenize` and `lowercase` of `keras_drill.metrics.score_texts`, by the options."""

    @abc.abstractmethod
    def measure_ceiling(self, run_vocabulary: Any, references: Sequence[str]) -> Any:
        """The highest scores that a model of these words can reach, those of the references."""


class ContinuingTask(Task):
    """A task whose models continue texts."""

    @abc.abstractmethod
    def evaluate_adapted(
        self,
        model: keras.Model,
        run_vocabulary: RunVocabulary,
        texts: Mapping[str, Any],
        adaptation: Adaptation,
    ) -> Evaluation:
        """Evaluates a model that adapts to the texts while it reads them."""

    @abc.abstractmethod
    def text_model(
        self,
        model: keras.Model,
        run_vocabulary: RunVocabulary,
        sampler: Sampler,
        seed: int,
        max_tokens: int,
        stop_strings: tuple[str, ...] = (),
        contexts: SenseContexts | None = None,
    ) -> TextModel:
        """The model with text in and text out, as it would be exported; see `TextModel`."""

    @abc.abstractmethod
    def export(
        self,
        model: keras.Model,
        run_vocabulary: RunVocabulary,
        directory: Path,
        version: int | None,
        sampler: Sampler,
        seed: int,
        max_tokens: int,
        stop_strings: tuple[str, ...] = (),
        weights: str = "float32",
        card: ModelCard | None = None,
        contexts: SenseContexts | None = None,
    ) -> Path:
        """Writes it for servers; see `export_saved_model`."""
