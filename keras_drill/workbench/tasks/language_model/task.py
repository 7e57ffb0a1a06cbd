"""The task of language models."""

import dataclasses
import hashlib
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import keras
import numpy as np

import keras_drill
from keras_drill.data import (
    ContiguousBatches,
    Corpus,
    EncodedText,
    Lines,
    StreamedText,
    TextLines,
    Tokenizer,
    Vocabulary,
    WhitespaceTokenizer,
    WordTokenizer,
)
from keras_drill.data.content_splits import text_splits
from keras_drill.data.cut_text import signs_of_cut_text
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.data.paragraphs import Paragraphs
from keras_drill.data.word_numbers import WordNumbers
from keras_drill.decoding import Sampler
from keras_drill.export import ModelCard, SenseContexts, TextModel, export_saved_model
from keras_drill.workbench.analysis.collect import collect_log_probs, in_text_order
from keras_drill.workbench.report import SampleContinuation
from keras_drill.workbench.report.comparability import PerplexityBasis
from keras_drill.workbench.tasks.adaptation import Adaptation
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.explain_text import first_lines
from keras_drill.workbench.tasks.language_model.adapt import adapt, perplexity_of
from keras_drill.workbench.tasks.language_model.build_model import build_model
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.language_model.evaluation import (
    LanguageModelEvaluation,
    beginnings,
    report_sections,
    write_samples,
)
from keras_drill.workbench.tasks.language_model.explain_text import explain_text
from keras_drill.workbench.tasks.language_model.run_vocabulary import LanguageModelVocabulary
from keras_drill.workbench.tasks.make_sampler import make_sampler
from keras_drill.workbench.tasks.task import ContinuingTask

# Recurrent models remember next to nothing beyond: any data.batch_size gives the same figures.
_MIN_CONTEXT = 512
# Options of the data.
_NOT_OF_WORDS = ("path", "on_disk", "batch_size", "sequence_length", "variable_length")


class LanguageModelTask(ContinuingTask):
    """Task of language models.

    A text is one long sequence of words. The model predicts each word from all words before it.
    """

    config: LanguageModelConfig
    columns = ("text",)

    def read_corpus(self, data: str, cut_by_content: bool) -> dict[str, dict[str, Lines]]:
        splits = text_splits(data) if cut_by_content else Corpus(data).splits
        return {name: {"text": self._units(lines)} for name, lines in splits.items()}

    def _units(self, lines: Lines) -> Lines:
        return Paragraphs(lines) if self.config.data.unit == "paragraph" else lines

    def read_whole_corpus(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        path = data[0] if len(data) == 1 else data
        splits = Corpus(path, split=False).splits
        return {name: {"text": self._units(lines)} for name, lines in splits.items()}

    def learn_words(
        self, columns: Mapping[str, Lines], numbers: WordNumbers | None = None
    ) -> LanguageModelVocabulary:
        options = self.config.data
        tokenizer = self._tokenizer()
        if options.vocabulary:
            return LanguageModelVocabulary(tokenizer, Vocabulary.load(options.vocabulary))
        vocabulary = Vocabulary.build(
            columns["text"],
            tokenizer,
            max_size=options.max_vocabulary or None,
            min_count=options.min_count,
            numbers=numbers,
        )
        return LanguageModelVocabulary(tokenizer, vocabulary)

    def grow_words(
        self,
        known: LanguageModelVocabulary,
        columns: Mapping[str, Lines],
        numbers: WordNumbers | None = None,
    ) -> LanguageModelVocabulary:
        if self.config.data.vocabulary:
            return self.learn_words(columns)
        found = self.learn_words(columns, numbers).vocabulary
        counts = dict(zip(known.tokens, known.counts or [0] * len(known.tokens), strict=True))
        most = max(self.config.data.max_vocabulary or math.inf, len(counts))
        for word, count in zip(found.tokens, found.counts or (), strict=True):
            if word in counts or len(counts) < most:
                counts[word] = counts.get(word, 0) + count
        return LanguageModelVocabulary(
            known.tokenizer, Vocabulary(list(counts), list(counts.values()))
        )

    def word_settings(self) -> dict[str, Any]:
        options = dataclasses.asdict(self.config.data)
        others = {name: value for name, value in options.items() if name not in _NOT_OF_WORDS}
        others["lowercase"] = self.config.resolved().data.lowercase
        if others["vocabulary"]:
            others["vocabulary"] = TextLines(others["vocabulary"]).fingerprint()
        return others

    def coders(self, run_vocabulary: Any) -> dict[str, tuple[Tokenizer, Vocabulary]]:
        return {"text": (run_vocabulary.tokenizer, run_vocabulary.vocabulary)}

    def load_vocabulary(self, folder: Path) -> LanguageModelVocabulary:
        return LanguageModelVocabulary.load(folder, self._tokenizer())

    def _tokenizer(self) -> Tokenizer:
        lowercase = self.config.resolved().data.lowercase == "true"
        if self.config.data.tokenizer == "words":
            return WordTokenizer(lowercase)
        # With single spaces between words, generated text can be read again and scored.
        return WhitespaceTokenizer(lowercase, tidy=False)

    def read_texts(
        self, run_vocabulary: Any, data: str | None = None
    ) -> dict[str, np.ndarray | StreamedText]:
        cache = self.config.data.on_disk
        if not cache:
            return super().read_texts(run_vocabulary, data)
        path = self.config.data.path if data is None else data
        if ExampleFolder.is_at(path):
            raise RunError(
                "data.on_disk must not be set if data.path is a folder of examples, which is read "
                "into memory; remove data.on_disk, or set data.path to the original text. "
                f"Received: data.path = {path}, data.on_disk = {cache}"
            )
        splits = {split: columns["text"] for split, columns in self.read_columns(path).items()}
        self.warn_of_text(path, {"text": splits["train"]})
        coders = self.coders(run_vocabulary)["text"]
        return {
            split: StreamedText.encode(lines, *coders, cache)
            if split == "train"
            else EncodedText.encode(lines, *coders).ids
            for split, lines in splits.items()
        }

    def make_text(
        self, encoded: Mapping[str, EncodedText], lines: Mapping[str, Lines]
    ) -> np.ndarray:
        return encoded["text"].ids

    def warn_of_text(self, data: str, columns: Mapping[str, Lines]) -> None:
        """Warns if a tokenizer for raw text is used for text that seems to be tokenized."""
        tokenizer = self.config.data.tokenizer
        if tokenizer == "whitespace" or ExampleFolder.is_at(data):
            return
        signs = signs_of_cut_text(first_lines(columns["text"]))
        if signs:
            print(
                f"keras-drill: warning: {data} looks tokenized already (it contains "
                f"{', '.join(signs)}). --data.tokenizer {tokenizer} tokenizes the text again, so "
                "results cannot be compared with published results; use --data.tokenizer "
                "whitespace to keep the text's tokens",
                file=sys.stderr,
            )

    def fingerprint(self, texts: Mapping[str, np.ndarray | StreamedText]) -> str:
        digest = hashlib.sha256()
        for text in texts.values():
            for ids in text.blocks() if isinstance(text, StreamedText) else [text]:
                digest.update(np.ascontiguousarray(ids).data)
        return digest.hexdigest()

    def describe(self, run_vocabulary: Any, texts: Mapping[str, np.ndarray | StreamedText]) -> str:
        sizes = ", ".join(f"{len(ids):,} of {name}" for name, ids in texts.items())
        return f"{len(run_vocabulary.vocabulary):,} words; tokens: {sizes}"

    def explain_text(
        self, run_vocabulary: Any, texts: Mapping[str, np.ndarray | StreamedText]
    ) -> str:
        path = self.config.data.path
        # Examples of a pipeline may contain only ids.
        has_text = not ExampleFolder.is_at(path)
        lines = first_lines(self.read_columns(path)["train"]["text"]) if has_text else []
        return explain_text(
            self.config.data, run_vocabulary, self.target_ids(texts["valid"]), lines
        )

    def training_batches(
        self, run_vocabulary: Any, text: np.ndarray | StreamedText
    ) -> ContiguousBatches:
        options = self.config.data
        rows, length = options.batch_size, options.sequence_length
        if len(text) < rows * length:
            raise RunError(
                "the training text must have at least data.batch_size x data.sequence_length = "
                f"{rows} x {length} = {rows * length:,} tokens; lower one of these options, or "
                f"give more text. Received: {len(text):,} tokens"
            )
        return ContiguousBatches(
            text,
            rows,
            length,
            variable_length=options.variable_length,
            first_token=run_vocabulary.vocabulary.end_id,
            seed=self.config.training.seed,
        )

    def evaluation_batches(
        self,
        run_vocabulary: Any,
        text: np.ndarray,
        rows: int | None = None,
        length: int | None = None,
    ) -> ContiguousBatches:
        return ContiguousBatches(
            text,
            rows or self.config.data.batch_size,
            length or self.config.data.sequence_length,
            padding=True,
            first_token=run_vocabulary.vocabulary.end_id,
            min_context=_MIN_CONTEXT,
        )

    def target_places(
        self,
        run_vocabulary: Any,
        text: np.ndarray,
        rows: int | None = None,
        length: int | None = None,
    ) -> np.ndarray:
        places = self.evaluation_batches(
            run_vocabulary, np.arange(len(text), dtype=np.int32), rows, length
        ).dataset()
        return np.concatenate(
            [targets.numpy()[weights.numpy() != 0] for _, targets, weights in places]
        )

    def first_tokens(self, text: np.ndarray | StreamedText, number: int) -> np.ndarray:
        if isinstance(text, StreamedText):
            return text.read(0, min(number, len(text)))
        return text[:number]

    def target_ids(self, text: np.ndarray | StreamedText) -> np.ndarray:
        return self.first_tokens(text, len(text))

    def build_model(self, run_vocabulary: Any, num_replicas: int = 1) -> keras_drill.LanguageModel:
        rows = self.config.data.batch_size
        if rows % num_replicas:
            raise RunError(
                f"data.batch_size must be a multiple of the {num_replicas} replicas of "
                f"training.strategy = {self.config.training.strategy!r}, which share the rows of a "
                f"batch. Received: {rows}"
            )
        return build_model(
            self.config,
            len(run_vocabulary.vocabulary),
            rows // num_replicas,
            run_vocabulary.descriptions,
        )

    def example_batch(self, num_replicas: int = 1) -> tuple[np.ndarray, np.ndarray]:
        tokens = np.zeros((self.config.data.batch_size // num_replicas, 1), "int32")
        return tokens, tokens

    def validation_loss(self, values: Mapping[str, float]) -> float:
        return math.log(values["val_perplexity"])

    def describe_loss(self, loss: float) -> str:
        return f"validation perplexity {math.exp(loss):.2f}"

    def evaluate(
        self, model: keras.Model, run_vocabulary: Any, texts: Mapping[str, np.ndarray]
    ) -> LanguageModelEvaluation:
        log_probs = {
            name: in_text_order(
                collect_log_probs(model, self.evaluation_batches(run_vocabulary, text).dataset())[
                    1
                ],
                self.target_places(run_vocabulary, text),
            )
            for name, text in texts.items()
        }
        options = self.config.samples
        samples: tuple[SampleContinuation, ...] = ()
        prompts = options.prompts
        if prompts == ("auto",):
            prompts = beginnings(run_vocabulary, next(iter(texts.values()), np.zeros(0, np.int32)))
        if prompts:
            sampler = make_sampler(
                options.sampler, options.temperature, options.k, options.p, options.min_p
            )
            module = self.text_model(
                model, run_vocabulary, sampler, options.seed, options.max_tokens
            )
            samples = write_samples(options, prompts, module)
        return LanguageModelEvaluation(
            {name: perplexity_of(each) for name, each in log_probs.items()},
            log_probs=log_probs,
            targets=list(texts.values())[-1] if texts else np.zeros(0, np.int32),
            samples=samples,
        )

    def evaluate_adapted(
        self,
        model: keras.Model,
        run_vocabulary: Any,
        texts: Mapping[str, np.ndarray],
        adaptation: Adaptation,
    ) -> LanguageModelEvaluation:
        adapted = adapt(self, model, run_vocabulary, texts, adaptation)
        plain = self.evaluate(model, run_vocabulary, texts)
        shown = ", ".join(f"{name} {value:.2f}" for name, value in plain.perplexities.items())
        return dataclasses.replace(
            plain,
            perplexities={name: perplexity_of(each) for name, each in adapted.log_probs.items()},
            log_probs=adapted.log_probs,
            notes=(*adapted.notes, f"perplexity without adaptation: {shown}"),
            adaptation={**adapted.settings, "perplexities_without": dict(plain.perplexities)},
        )

    def sections(
        self,
        run_vocabularies: Sequence[Any],
        evaluated: Mapping[str, LanguageModelEvaluation],
        bases: Mapping[str, PerplexityBasis],
    ) -> list[ElementTree.Element]:
        return report_sections(run_vocabularies[0].counts, evaluated, bases)

    def text_model(
        self,
        model: keras.Model,
        run_vocabulary: Any,
        sampler: Sampler,
        seed: int,
        max_tokens: int,
        stop_strings: tuple[str, ...] = (),
        contexts: SenseContexts | None = None,
    ) -> TextModel:
        return TextModel(
            model,
            run_vocabulary.tokenizer,
            run_vocabulary.vocabulary,
            sampler=sampler,
            seed=seed,
            max_new_tokens=max_tokens,
            k=min(10, len(run_vocabulary.vocabulary)),
            stop_strings=stop_strings,
            contexts=contexts,
            unit=self.config.data.unit,
        )

    def export(
        self,
        model: keras.Model,
        run_vocabulary: Any,
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
        return export_saved_model(
            model,
            directory,
            run_vocabulary.tokenizer,
            run_vocabulary.vocabulary,
            version=version,
            sampler=sampler,
            seed=seed,
            max_new_tokens=max_tokens,
            stop_strings=stop_strings,
            k=min(10, len(run_vocabulary.vocabulary)),
            weights=weights,
            card=card,
            contexts=contexts,
            unit=self.config.data.unit,
        )
