"""The base class of encoder–decoder tasks."""

import dataclasses
import hashlib
import itertools
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
    EncodedText,
    Lines,
    PairBatches,
    ParallelText,
    Tokenizer,
    Vocabulary,
    truncate_text,
)
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.data.word_numbers import WordNumbers
from keras_drill.decoding import BeamSearch, Search
from keras_drill.export import ModelCard, Side, Translator, export_translator
from keras_drill.metrics.text_scores import count_words, score_texts
from keras_drill.workbench.analysis.collect import collect_log_probs, in_text_order
from keras_drill.workbench.report.comparability import PerplexityBasis, differences
from keras_drill.workbench.tasks.answer import answer_all, warn_of_limits
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.explain_text import first_lines
from keras_drill.workbench.tasks.sequence_to_sequence.attention_maps import attention_maps
from keras_drill.workbench.tasks.sequence_to_sequence.build_model import build_model
from keras_drill.workbench.tasks.sequence_to_sequence.ceiling import Ceiling
from keras_drill.workbench.tasks.sequence_to_sequence.config import SequenceToSequenceConfig
from keras_drill.workbench.tasks.sequence_to_sequence.constraints import make_constraints
from keras_drill.workbench.tasks.sequence_to_sequence.evaluation import Answers, report_sections
from keras_drill.workbench.tasks.sequence_to_sequence.explain_text import (
    explain_text,
    warn_of_cut_text,
)
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig
from keras_drill.workbench.tasks.sequence_to_sequence.run_vocabulary import (
    SequenceToSequenceVocabulary,
)
from keras_drill.workbench.tasks.sequence_to_sequence.sections import AttentionMap
from keras_drill.workbench.tasks.task import AnsweringTask

_COUNTED_LINES = 500_000
# Of the options of the data.
_NOT_OF_WORDS = ("path", "batch_tokens", "max_length", "long_pairs", "max_length_ratio")


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """Encoded pairs of a source and a target, with their original texts.

    Args:
        source: The sources as ids.
        target: The targets as ids.
        lines: The original texts.
    """

    source: EncodedText
    target: EncodedText
    lines: ParallelText


class SequenceToSequenceTask(AnsweringTask):
    """Base class for encoder–decoder tasks. A text is a list of pairs of a source and a target.

    Subclasses define how pairs are read from a corpus.
    """

    config: SequenceToSequenceConfig
    columns = ("source", "target")
    needs_lines = True

    def read_pairs(self, data: str) -> dict[str, ParallelText]:
        """Returns the pairs of a corpus, by split."""
        return {
            name: ParallelText(columns["source"], columns["target"])
            for name, columns in self.read_columns(data).items()
        }

    def learn_words(
        self, columns: Mapping[str, Lines], numbers: WordNumbers | None = None
    ) -> SequenceToSequenceVocabulary:
        train = ParallelText(columns["source"], columns["target"])
        return SequenceToSequenceVocabulary.make(train, self.config.data)

    def word_settings(self) -> dict[str, Any]:
        options = dataclasses.asdict(self.config.data)
        others = {name: value for name, value in options.items() if name not in _NOT_OF_WORDS}
        for name in ("tokenizer_model", "source_tokenizer_model"):
            if others[name]:
                others[name] = hashlib.sha256(Path(others[name]).read_bytes()).hexdigest()
        return {**others, "symbols": self.config.data.symbols}

    def coders(self, run_vocabulary: Any) -> dict[str, tuple[Tokenizer, Vocabulary]]:
        sides = {"source": run_vocabulary.source, "target": run_vocabulary.target}
        return {name: (side.tokenizer, side.vocabulary) for name, side in sides.items()}

    def load_vocabulary(self, folder: Path) -> SequenceToSequenceVocabulary:
        return SequenceToSequenceVocabulary.load(folder, self.config.data)

    def make_text(
        self, encoded: Mapping[str, EncodedText], lines: Mapping[str, Lines]
    ) -> EncodedPairs:
        pairs = ParallelText(lines["source"], lines["target"])
        return EncodedPairs(encoded["source"], encoded["target"], pairs)

    def fingerprint(self, texts: Mapping[str, EncodedPairs]) -> str:
        digest = hashlib.sha256()
        for text, side in itertools.product(texts.values(), ("source", "target")):
            encoded = getattr(text, side)
            digest.update(encoded.ids.tobytes() + encoded.line_lengths.tobytes())
        return digest.hexdigest()

    def describe(self, run_vocabulary: Any, texts: Mapping[str, EncodedPairs]) -> str:
        sizes = ", ".join(f"{len(t.target.line_lengths):,} of {name}" for name, t in texts.items())
        sides = dict.fromkeys(
            (len(run_vocabulary.source.vocabulary), len(run_vocabulary.target.vocabulary))
        )
        vocabularies = " and ".join(f"{size:,}" for size in sides)
        return f"{vocabularies} words; pairs: {sizes}"

    def explain_text(self, run_vocabulary: Any, texts: Mapping[str, EncodedPairs]) -> str:
        valid = texts["valid"]
        return explain_text(
            self.config.data, run_vocabulary, valid.target, valid.lines, self.scoring
        )

    def warn_of_text(self, data: str, columns: Mapping[str, Lines]) -> None:
        if not ExampleFolder.is_at(data):
            beginnings = {name: first_lines(lines) for name, lines in columns.items()}
            warn_of_cut_text(self.config.data, self.scoring["tokenize"], data, beginnings)

    def training_batches(self, run_vocabulary: Any, text: EncodedPairs) -> PairBatches:
        options = self.config.data
        batches = self._batches(
            run_vocabulary,
            text,
            batch_tokens=options.batch_tokens,
            max_length=options.max_length,
            long_pairs=options.long_pairs,
            max_length_ratio=options.max_length_ratio or None,
            seed=self.config.training.seed,
            drop_empty=True,
        )
        for told in _describe_changes(batches, options):
            print(f"keras-drill: warning: {told}", file=sys.stderr)
        return batches

    def evaluation_batches(self, run_vocabulary: Any, text: EncodedPairs) -> PairBatches:
        read = self.truncate_sources(run_vocabulary, text, self.config.max_source_tokens)
        return self._batches(
            run_vocabulary, read, batch_tokens=self.config.data.batch_tokens, shuffle=False
        )

    def truncate_sources(
        self, run_vocabulary: Any, text: EncodedPairs, max_length: int
    ) -> EncodedPairs:
        """Truncates long sources as in decoding. Returns `text` itself if no source is long."""
        data = self.config.data
        separator = None
        if data.turn_separator is not None:
            side = Side(run_vocabulary.source.tokenizer, run_vocabulary.source.vocabulary)
            separator = side.separator_id(data.turn_separator)
        source = truncate_text(text.source, max_length, data.truncation_side, separator)
        return text if source is text.source else dataclasses.replace(text, source=source)

    def _batches(self, run_vocabulary: Any, text: EncodedPairs, **options: Any) -> PairBatches:
        vocabulary = run_vocabulary.target.vocabulary
        return PairBatches(
            text.source,
            text.target,
            end_id=vocabulary.end_id,
            start_id=vocabulary.start_id,
            pad_id=vocabulary.pad_id,
            **options,
        )

    def target_places(self, run_vocabulary: Any, text: EncodedPairs) -> np.ndarray:
        lengths = text.target.line_lengths
        starts = np.cumsum(lengths) - lengths
        order = self.evaluation_batches(run_vocabulary, text).order
        return np.concatenate([np.arange(starts[row], starts[row] + lengths[row]) for row in order])

    def first_tokens(self, text: EncodedPairs, number: int) -> EncodedPairs:
        lines = int(np.searchsorted(np.cumsum(text.target.line_lengths), number)) + 1
        return EncodedPairs(
            _first_lines(text.source, lines), _first_lines(text.target, lines), text.lines
        )

    def target_ids(self, text: EncodedPairs) -> np.ndarray:
        return text.target.ids

    def build_model(
        self, run_vocabulary: Any, num_replicas: int = 1
    ) -> keras_drill.SequenceToSequence:
        return build_model(self.config, run_vocabulary)

    def example_batch(self, num_replicas: int = 1) -> tuple[dict[str, np.ndarray], np.ndarray]:
        tokens = np.ones((1, 1), "int32")
        return {"source": tokens, "target": tokens}, tokens

    def validation_scores(
        self, model: keras.Model, run_vocabulary: Any, texts: Mapping[str, EncodedPairs]
    ) -> dict[str, float]:
        number = self.config.decoding.validation_sentences
        if not number:
            return {}
        lines = texts["valid"].lines
        sources = [line.decode() for line in itertools.islice(iter(lines.source), number)]
        references = [line.decode() for line in itertools.islice(iter(lines.target), number)]
        greedy = self.translator(model, run_vocabulary, BeamSearch(1, num_results=1))
        answers = [answer.texts[0] for answer in answer_all(greedy, sources)]
        scores = score_texts(answers, references, **self.scoring)
        print(f"validation BLEU {scores.bleu:.2f}, chrF {scores.chrf:.2f} (greedy)", flush=True)
        return {"val_bleu": scores.bleu, "val_chrf": scores.chrf}

    def validation_loss(self, values: Mapping[str, float]) -> float:
        if self.config.decoding.best_by == "perplexity":
            return math.log(values["val_perplexity"])
        return -values[f"val_{self.config.decoding.best_by}"]

    def describe_loss(self, loss: float) -> str:
        if self.config.decoding.best_by == "perplexity":
            return f"validation perplexity {math.exp(loss):.2f}"
        name = {"bleu": "BLEU", "chrf": "chrF"}[self.config.decoding.best_by]
        return f"validation {name} {-loss:.2f}"

    def evaluate(
        self, model: keras.Model, run_vocabulary: Any, texts: Mapping[str, EncodedPairs]
    ) -> Answers:
        if not texts:
            return Answers({})
        log_probs = self._log_probs(model, run_vocabulary, texts)
        split, text = list(texts.items())[-1]
        sources = [line.decode() for line in text.lines.source]
        translator = self.translator(model, run_vocabulary, self.make_search(num_results=1))
        answers = answer_all(translator, sources, verbose=1)
        warn_of_limits(answers, self.config)
        references = [line.decode() for line in text.lines.target]
        ceiling = self.measure_ceiling(run_vocabulary, references)
        if not ceiling.is_reached:
            print(f"{split}: {ceiling}", flush=True)
        return Answers.score(
            log_probs,
            split,
            sources=sources,
            references=references,
            answers=[answer.texts[0] for answer in answers],
            scoring=self.scoring,
            output_layer=self.config.output_layer,
            training_counts=self._training_counts(),
            attention=self._attention_maps(model, run_vocabulary, sources),
            ceiling=ceiling,
        )

    def _training_counts(self) -> Mapping[str, int] | None:
        """Counts the words in the first lines of the training targets."""
        try:
            lines = self.read_pairs(self.config.data.path)["train"].target
        except FileNotFoundError:
            print(
                f"keras-drill: warning: the training text {self.config.data.path} does not exist: "
                "translations are not compared by word frequency",
                file=sys.stderr,
            )
            return None
        some = (line.decode() for line in itertools.islice(iter(lines), _COUNTED_LINES))
        return count_words(some, **self.scoring)

    def _attention_maps(
        self, model: keras.Model, run_vocabulary: Any, sources: Sequence[str]
    ) -> dict[int, AttentionMap]:
        number = self.config.decoding.attention_maps
        if not number or not self.config.backbone.attends:
            return {}
        search = self.make_search(num_results=1, return_attention=True)
        return attention_maps(self.translator(model, run_vocabulary, search), sources[:number])

    def _log_probs(
        self, model: keras.Model, run_vocabulary: Any, texts: Mapping[str, EncodedPairs]
    ) -> dict[str, np.ndarray]:
        batches = [self.evaluation_batches(run_vocabulary, text) for text in texts.values()]
        # All at once, since each call compiles the model for the shapes of its batches.
        joined = itertools.chain.from_iterable(each.dataset() for each in batches)
        log_probs = collect_log_probs(model, joined)[1]
        ends = np.cumsum([each.num_targets for each in batches])[:-1]
        return {
            split: in_text_order(part, self.target_places(run_vocabulary, texts[split]))
            for split, part in zip(texts, np.split(log_probs, ends), strict=True)
        }

    def make_search(self, **changes: Any) -> BeamSearch:
        options = self.config.decoding
        return BeamSearch(
            **{
                "num_beams": options.num_beams,
                "length_penalty": options.length_penalty,
                "coverage_penalty": options.coverage_penalty,
                "num_results": options.num_results,
                "num_groups": options.num_groups,
                "diversity": options.diversity,
                **changes,
            }
        )

    def sections(
        self,
        run_vocabularies: Sequence[Any],
        evaluated: Mapping[str, Answers],
        bases: Mapping[str, PerplexityBasis],
    ) -> list[ElementTree.Element]:
        return report_sections(evaluated, not differences(bases))

    def translator(
        self, model: keras.Model, run_vocabulary: Any, search: Search, **options: Any
    ) -> Translator:
        return Translator(
            model,
            Side(run_vocabulary.source.tokenizer, run_vocabulary.source.vocabulary),
            Side(run_vocabulary.target.tokenizer, run_vocabulary.target.vocabulary),
            search,
            **{**self._limits(run_vocabulary), **options},
        )

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
        if self.config.data.moses:
            raise RunError(
                "data.moses must be empty to export a model, because Moses tokenization runs only "
                "in Python: train with data.moses empty (SentencePiece does not need it), or "
                "export the model from Python without this step, see `PreprocessedTokenizer` and "
                f"`export_translator`. Received: data.moses = {self.config.data.moses!r}"
            )
        return export_translator(
            model,
            directory,
            (run_vocabulary.source.tokenizer, run_vocabulary.source.vocabulary),
            (run_vocabulary.target.tokenizer, run_vocabulary.target.vocabulary),
            version=version,
            search=search,
            weights=weights,
            card=card,
            **self._limits(run_vocabulary),
        )

    def measure_ceiling(self, run_vocabulary: Any, references: Sequence[str]) -> Ceiling:
        return Ceiling.measure(run_vocabulary.target, references, self.scoring)

    @property
    def scoring(self) -> dict[str, Any]:
        options = self.config.resolved().decoding
        return {
            "tokenize": options.tokenize,
            "lowercase": options.score_lowercase == "true",
        }

    def _limits(self, run_vocabulary: Any) -> dict[str, Any]:
        """Returns the arguments of `Translator` that limit sources and outputs."""
        return {
            "max_source_tokens": self.config.max_source_tokens,
            "max_tokens": self.config.decoding.max_tokens,
            "max_ratio": self.config.decoding.max_ratio or None,
            "constraints": make_constraints(self.config.decoding, run_vocabulary.target),
            "truncation_side": self.config.data.truncation_side,
            "turn_separator": self.config.data.turn_separator,
            "replace_unknown": self.config.decoding.replace_unknown,
        }


def _first_lines(text: EncodedText, number: int) -> EncodedText:
    lengths = text.line_lengths[:number]
    return EncodedText(text.ids[: lengths.sum()], lengths)


def _describe_changes(batches: PairBatches, options: PairsConfig) -> list[str]:
    """Describes how many training pairs are dropped or cut, with the options that cause it."""
    total = len(batches.order) + batches.num_dropped
    reasons = [
        (batches.num_empty, "with an empty side"),
        (batches.num_long, f"longer than data.max_length = {options.max_length} tokens"),
        (
            batches.num_uneven,
            f"with one side more than data.max_length_ratio = {options.max_length_ratio:g} times "
            "as long as the other",
        ),
    ]
    told = []
    if batches.num_dropped:
        dropped = ", ".join(f"{number:,} {reason}" for number, reason in reasons if number)
        told.append(f"{batches.num_dropped:,} of {total:,} training pairs are dropped: {dropped}")
    if batches.num_truncated:
        told.append(
            f"{batches.num_truncated:,} of {total:,} training pairs are truncated to "
            f"data.max_length = {options.max_length} tokens (data.long_pairs = "
            f"{options.long_pairs!r}): sources {batches.num_truncated_sources:,}, targets "
            f"{batches.num_truncated_targets:,}"
        )
    return told
