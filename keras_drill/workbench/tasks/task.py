"""The base classes of tasks."""

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
    """The vocabulary of a run: its words and their ids."""

    @property
    def tokens(self) -> Sequence[str]:
        """The words of the model's output, by id."""

    @property
    def counts(self) -> Sequence[int] | None:
        """Counts of the words in the training text, by id; `None` if unknown."""

    @property
    def descriptions(self) -> np.ndarray | None:
        """Descriptions of the words, `[V, ...]`, for `head.kind = "described"`; else `None`."""

    @property
    def special_ids(self) -> Sequence[int]:
        """Ids of special tokens, such as the unknown token and the end of a line."""

    @property
    def fingerprint(self) -> str:
        """Digest of the vocabulary, which checkpoints store to detect another vocabulary."""

    def save(self, folder: Path) -> None:
        """Writes the files that `Task.load_vocabulary` reads."""


class Batches(Protocol):
    """Batches of a text. An epoch can be read from any batch on."""

    num_batches: int
    num_targets: int

    def dataset(self, epoch: int = 0, first_batch: int = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch: inputs, targets, and weights if targets are ignored.

        Args:
            epoch: Number of the epoch, from 0.
            first_batch: Number of batches at the beginning of the epoch to skip.
        """


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Evaluation results of a model.

    Args:
        perplexities: Perplexities by text: "valid", "test", or the name of another text.
        scores: Other metrics by name, such as `"test BLEU"`. Higher values are better.
        signatures: sacrebleu's signatures of the scores, by the metric's name, such as `"BLEU"`.
        log_probs: Log-probabilities of the targets of each text, float `[N]`, in the order of
            `Task.target_ids`.
        notes: Sentences on how the metrics were obtained, if they need an explanation.
    """

    perplexities: Mapping[str, float]
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    signatures: Mapping[str, str] = dataclasses.field(default_factory=dict)
    log_probs: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    notes: Sequence[str] = ()

    def figures(self) -> dict[str, Any]:
        """Returns all metrics of the model, JSON-serializable."""
        return {
            "perplexities": dict(self.perplexities),
            "scores": dict(self.scores),
            "signatures": dict(self.signatures),
        }


class Task(abc.ABC):
    """Base class for tasks.

    A task defines the data, the model, the metrics, the report sections and the exported signatures
    of one kind of training.

    A *text* is one split of a corpus, encoded in a format of the task. Pass texts only to the task
    that read them.

    Args:
        config: The options of a run.

    Attributes:
        columns: Names of the parts of an example: a text, or a source and a target.
        needs_lines: Whether the evaluation needs the original texts in addition to their ids.
    """

    columns: ClassVar[tuple[str, ...]]
    needs_lines: ClassVar[bool] = False

    def __init__(self, config: RunConfig):
        self.config = config

    def read_columns(self, data: str, cut_by_content: bool = False) -> dict[str, dict[str, Lines]]:
        """Reads the original lines of a training corpus, by split and column.

        Args:
            data: Path of a corpus or of a folder of examples.
            cut_by_content: Whether to split a corpus without splits by the content of lines, so
                that equal lines are in the same split, instead of by position.
        """
        if not ExampleFolder.is_at(data):
            return self.read_corpus(data, cut_by_content)
        splits = self._read_examples(data)
        if "train" not in splits:
            raise RunError(
                f"the folder of examples {data} must have a split named train. "
                f"Received: splits {', '.join(splits)}"
            )
        return splits

    def read_whole(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        """Reads the lines of complete texts for evaluation, by name and column.

        Args:
            data: Path of a file, path of a folder with some splits, or paths of several files that
                form one text, such as sources and targets. Splits keep their names; other texts
                are named after their files.
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
        """Does the work of `read_columns` for a corpus that is not a folder of examples."""

    @abc.abstractmethod
    def read_whole_corpus(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        """Does the work of `read_whole` for paths that are not a folder of examples."""

    def encode(
        self, run_vocabulary: Any, data: str, splits: Mapping[str, Mapping[str, Lines]]
    ) -> dict[str, dict[str, EncodedText]]:
        """Encodes texts to ids, by split and column.

        If `data` is a folder of encoded examples, their ids are read instead.

        Args:
            run_vocabulary: The vocabulary of the run.
            data: Path of a corpus or of a folder of examples.
            splits: Lines of the texts.
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
                f"the examples in {data} were encoded with another vocabulary or tokenizer: use "
                "the options with which they were encoded, or examples that are not encoded"
            )
        return {
            split: {column: folder.encoded(split, column) for column in self.columns}
            for split in splits
        }

    def make_vocabulary(self, folder: Path) -> RunVocabulary:
        """Returns the vocabulary of a run.

        The vocabulary is read from the run's folder if the run has begun, or from the folder of
        examples if that has one. Otherwise it is learned from the training text. Descriptions of
        words are computed if the output layer needs them.

        Args:
            folder: The folder of the run.
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
        """Learns the vocabulary from the training text, as the options say.

        Args:
            columns: The training text, by column.
            numbers: Cache for the tokenized text, which language models fill while they count
                words; `None` for no cache.
        """

    def grow_words(
        self, known: Any, columns: Mapping[str, Lines], numbers: WordNumbers | None = None
    ) -> RunVocabulary:
        """Adds new words to the vocabulary of a trained model, for further training.

        By default, returns the known vocabulary, since subwords can spell new words.

        Args:
            known: The vocabulary of the model.
            columns: The new training text, by column.
            numbers: See `learn_words`.
        """
        return known

    @abc.abstractmethod
    def word_settings(self) -> dict[str, Any]:
        """Returns all settings that determine the result of `learn_words`, JSON-serializable."""

    @abc.abstractmethod
    def coders(self, run_vocabulary: Any) -> dict[str, tuple[Tokenizer, Vocabulary]]:
        """Returns the tokenizer and vocabulary of each column."""

    @abc.abstractmethod
    def load_vocabulary(self, folder: Path) -> RunVocabulary:
        """Loads the vocabulary that `RunVocabulary.save` wrote."""

    def read_texts(self, run_vocabulary: RunVocabulary, data: str | None = None) -> dict[str, Any]:
        """Reads and encodes the texts for training.

        Args:
            run_vocabulary: The vocabulary of the run.
            data: Path of the corpus; `None` for the run's corpus.

        Returns:
            The texts by split: "train", "valid" and "test", in this order, as far as they exist.
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
        """Reads and encodes texts for the evaluation of a model.

        Args:
            run_vocabulary: The vocabulary of the run.
            data: Path or paths of the texts, see `read_whole`; `None` for the run's corpus.
            names: Names of the texts to read. By default all texts except "train"; if `data` has
                only a training text, that text.

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
                raise RunError(
                    f"{path} has no validation or test text; add such a text to the "
                    "folder, or give the text to evaluate with --data"
                )
        for name in names:
            if name not in splits:
                raise RunError(f"{path} has no {name} text; it has {', '.join(splits)}")
        splits = {name: splits[name] for name in names}
        if paths is not None:  # training has already warned about its own corpus
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
        """Makes a text in the task's format from the ids and lines of its columns."""

    def warn_of_text(  # noqa: B027  tasks may have no warnings
        self, data: str, columns: Mapping[str, Lines]
    ) -> None:
        """Prints a warning if the options do not suit a text. By default, does nothing."""

    @abc.abstractmethod
    def fingerprint(self, texts: Mapping[str, Any]) -> str:
        """Returns a digest of texts, which checkpoints store to detect other texts."""

    @abc.abstractmethod
    def describe(self, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]) -> str:
        """Describes the sizes of vocabulary and texts in one line."""

    @abc.abstractmethod
    def explain_text(self, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]) -> str:
        """Describes the preprocessing of a run's text in a few lines, and the options for it.

        Prints a warning if the preprocessing does not suit the text.
        """

    @abc.abstractmethod
    def training_batches(self, run_vocabulary: RunVocabulary, text: Any) -> Batches:
        """Makes batches for training. Raises `RunError` if there are none."""

    @abc.abstractmethod
    def evaluation_batches(self, run_vocabulary: RunVocabulary, text: Any) -> Batches:
        """Makes batches for evaluation, with every target of a text exactly once."""

    @abc.abstractmethod
    def target_places(self, run_vocabulary: RunVocabulary, text: Any) -> Any:
        """Returns the index in `target_ids` of each target of `evaluation_batches`, int `[N]`."""

    @abc.abstractmethod
    def first_tokens(self, text: Any, number: int) -> Any:
        """Returns the beginning of a text with about the given number of targets."""

    @abc.abstractmethod
    def target_ids(self, text: Any) -> Any:
        """Returns the ids of a text's targets in the order of the text, int32 `[N]`."""

    @abc.abstractmethod
    def build_model(self, run_vocabulary: RunVocabulary, num_replicas: int = 1) -> keras.Model:
        """Builds the model with new weights, without compiling it.

        Args:
            run_vocabulary: The vocabulary of the run.
            num_replicas: Number of replicas that share the rows of a batch.

        Raises:
            RunError: The rows of a batch cannot be divided among the replicas.
        """

    @abc.abstractmethod
    def example_batch(self, num_replicas: int = 1) -> tuple[Any, Any]:
        """Returns the smallest inputs and targets of a replica, to create all variables."""

    @abc.abstractmethod
    def validation_loss(self, values: Mapping[str, float]) -> float:
        """Returns the loss by which the best epoch is selected. Lower values are better.

        Args:
            values: Values of an epoch in the history.
        """

    @abc.abstractmethod
    def describe_loss(self, loss: float) -> str:
        """Describes a value of `validation_loss` for the user."""

    def validation_scores(
        self, model: keras.Model, run_vocabulary: RunVocabulary, texts: Mapping[str, Any]
    ) -> dict[str, float]:
        """Computes further metrics of an epoch for the history. By default, none."""
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
        """Builds the sections of the report about evaluated models.

        Args:
            run_vocabularies: The vocabulary of each model.
            evaluated: Evaluation results of each model, by name.
            bases: The `PerplexityBasis` of each model's last perplexity, by name; not needed for a
                single model.
        """


class AnsweringTask(Task):
    """Base class for tasks whose models generate an output for each source."""

    @abc.abstractmethod
    def make_search(self, **changes: Any) -> BeamSearch:
        """Makes the beam search that the options describe.

        Args:
            **changes: Arguments of `BeamSearch` that replace those of the options.
        """

    @abc.abstractmethod
    def translator(
        self, model: keras.Model, run_vocabulary: Any, search: Search, **options: Any
    ) -> Translator:
        """Makes a `Translator`, which reads and writes text and is the module for export.

        Args:
            model: The model.
            run_vocabulary: The vocabulary of the run.
            search: Search or sampler for the outputs.
            **options: Arguments of `Translator` that replace those of the run.
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
        """Exports the model for servers; see `keras_drill.export.export_translator`."""

    @property
    @abc.abstractmethod
    def scoring(self) -> dict[str, Any]:
        """The arguments `tokenize` and `lowercase` for `keras_drill.metrics.score_texts`."""

    @abc.abstractmethod
    def measure_ceiling(self, run_vocabulary: Any, references: Sequence[str]) -> Any:
        """Measures the highest scores that a model with this vocabulary can reach."""


class ContinuingTask(Task):
    """Base class for tasks whose models continue texts."""

    @abc.abstractmethod
    def evaluate_adapted(
        self,
        model: keras.Model,
        run_vocabulary: RunVocabulary,
        texts: Mapping[str, Any],
        adaptation: Adaptation,
    ) -> Evaluation:
        """Evaluates a model by dynamic evaluation, a neural cache, or both; see `Adaptation`."""

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
        """Makes a `TextModel`, which reads and writes text and is the module for export."""

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
        """Exports the model for servers; see `export_saved_model`."""
