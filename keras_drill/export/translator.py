"""An encoder–decoder that takes sources and gives answers, both as text.

Shapes: B texts, S words of the longest one, n answers to each, L words of the longest one.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.decoding import Beams, BeamSearch, Constraint, LanguageModelStep
from keras_drill.export.asset_vocabulary import AssetVocabulary
from keras_drill.export.examples import read_texts
from keras_drill.export.model_card import ModelCard
from keras_drill.export.narrow_weights import served_signatures
from keras_drill.export.saved_model_version import new_version, write_module
from keras_drill.export.score_words import score_words
from keras_drill.export.side import Side
from keras_drill.layers.cudnn import portable_kernels

_TEXTS, _EXAMPLES = (tf.TensorSpec([None], tf.string, name) for name in ("texts", "examples"))
_IDS = tf.TensorSpec([None, None], tf.int32)
_LENGTHS = tf.TensorSpec([None], tf.int32)


class Translator(tf.Module):
    """Text in, text out: an encoder–decoder with the words of both its sides.

    What `export_translator` writes, usable as it is in the exporting process. The answer to a text
    depends on nothing else in the batch. Line breaks are spaces, unknown words are read as such and
    never written, and an empty text has empty answers.

    Args:
        model: A built `keras_drill.SequenceToSequence`.
        source: The `Side` of the sources.
        target: The `Side` of the targets; may be the same.
        search: Finds the answers. The default is `BeamSearch(5, length_penalty=1.0)`, of which one
            is given back.
        max_source_tokens: Sources are cut to so many tokens.
        max_tokens: Most tokens of an answer.
        max_ratio: An answer has no more than 10 tokens and so many for each token of its source.
        constraints: What answers must not be, or should not: see `keras_drill.decoding`.

    Example:

    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> vocabulary = Vocabulary(["<pad>", "<unk>", "<eos>", "<sos>", "ein", "a", "Haus", "house"])
    >>> side = Side(WhitespaceTokenizer(), vocabulary)
    >>> backbone = keras_drill.models.RecurrentEncoderDecoder(8, 4, units=5)
    >>> model = keras_drill.SequenceToSequence(backbone, keras_drill.OutputLayer(8))
    >>> translator = Translator(model, side, side)
    >>> answers = translator.translate(["ein Haus", ""])
    >>> answers["texts"].shape, answers["scores"].shape
    (TensorShape([2, 1]), TensorShape([2, 1]))
    """

    def __init__(
        self,
        model: Any,
        source: Side,
        target: Side,
        search: BeamSearch | None = None,
        max_source_tokens: int = 256,
        max_tokens: int = 100,
        max_ratio: float = 2.0,
        constraints: Sequence[Constraint] = (),
    ):
        super().__init__(name="translator")
        # Kept in a plain object: tf.Module would track, and export, every variable of a layer.
        self._step = LanguageModelStep(model)
        if self._step.vocabulary_size != len(target.vocabulary):
            raise ValueError(
                f"`target` must have the model's {self._step.vocabulary_size} words. "
                f"Received: {len(target.vocabulary)} words"
            )
        limits = {
            "max_source_tokens": max_source_tokens,
            "max_tokens": max_tokens,
            "max_ratio": max_ratio,
        }
        for name, value in limits.items():
            if not value > 0:
                raise ValueError(f"`{name}` must be positive. Received: {name}={value!r}")
        self.source = source
        self.target = target
        self.search = BeamSearch(5, 1.0, num_results=1) if search is None else search
        self.max_source_tokens = max_source_tokens
        self.max_tokens = max_tokens
        self.max_ratio = max_ratio
        self.constraints = tuple(constraints)
        words = target.vocabulary
        self._start_id = words.end_id if words.start_id is None else words.start_id
        special = {words.unknown_id, words.start_id, words.pad_id} - {None, words.end_id}
        self._forbidden = tuple(sorted(special))

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def translate(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers texts.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `texts` `[B, n]`: the answers, the best first;
            `scores` `[B, n]`: what they are ranked by, log-probabilities over length penalties;
            negative infinity where there are fewer answers, whose text is empty;
            `log_probs` `[B, n]`: log-probabilities;
            `lengths` `[B, n]`: in tokens, an end token included;
            `source_lengths` `[B]`: tokens of the texts before they were cut, an end token included.
        """
        ids, lengths = self._read(texts)
        return self._answers(ids, lengths, self._search)

    def answer(self, texts: Any) -> dict[str, tf.Tensor]:
        """As `translate`; outside of graphs also where a tokenizer's preprocessing is in Python.

        Args:
            texts: Strings `[B]`.
        """
        if self.runs_in_graphs:
            return self.translate(texts)
        ids, lengths = self._read(texts)
        return self._answers(ids, lengths, self._search_in_graph)

    def score(self, sources: Any, targets: Any) -> dict[str, tf.Tensor]:
        """Log-probability of answers given their sources, word by word.

        Like `answer`, for calls outside of graphs; exported models have it in `examples`.

        Args:
            sources: Strings `[B]`.
            targets: As many strings, the answers to score, of any length.

        Returns:
            Dictionary of `words`, `log_probs`, `lengths`, `total_log_probs` and `perplexities` as
            of `examples`, and `source_lengths` as of `translate`.
        """
        ids, source_lengths = self._read(sources)
        told = self._scores_in_graph(ids, *self.target.encode(targets))
        return {**told, "source_lengths": source_lengths}

    @property
    def runs_in_graphs(self) -> bool:
        """Whether the tokenizers do, and with them what is exported."""
        return self.source.tokenizer.runs_in_graphs and self.target.tokenizer.runs_in_graphs

    def _answers(self, ids, source_lengths, search):
        beams = search(ids, source_lengths)
        return {
            "texts": self._texts(source_lengths, beams),
            "scores": beams.scores,
            "log_probs": beams.log_probs,
            "lengths": beams.lengths - 1,
            "source_lengths": source_lengths,
        }

    @tf.function(input_signature=[_EXAMPLES], autograph=False)
    def examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Answers what serialized `tf.Example`s have, and scores what should be answered.

        An example has a feature `source`, which is answered, and may have one `target`, which is
        scored as the answer to it.

        Args:
            examples: String tensor `[B]`.

        Returns:
            Dictionary of
            `answers` `[B]`: the best answers as by `translate`;
            `words` `[B, T]`: the words of the targets as the model knows them, an end token last;
            `log_probs` `[B, T]`: log-probability of each, given the source and those before it;
            `lengths` `[B]`: how many words, 0 where there is no target;
            `total_log_probs` `[B]`: sums of `log_probs`;
            `perplexities` `[B]`: exp(-total_log_probs / lengths), 0 where there is no target;
            `problems` `[B]`: what is wrong with an example, for which all else is empty, or `""`.
        """
        features, problems = read_texts(examples, ["source"], ["target"])
        source, target = features["source"], features["target"]
        sources, source_lengths, beams = self.find(source.texts)
        ids, lengths = self.target.encode(target.texts)
        lengths = tf.where(target.has & source.has, lengths, 0)
        return self._scores(sources, ids, lengths) | {
            "answers": self._texts(source_lengths, beams)[:, 0],
            "problems": problems,
        }

    def find(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Beams]:
        """Sources `[B, S]` of texts `[B]` in ids, their lengths `[B]` before they were cut, and the
        answers to them."""
        ids, source_lengths = self._read(texts)
        return ids, source_lengths, self._search(ids, source_lengths)

    def _read(self, texts):
        ids, source_lengths = self.source.encode(texts, self.max_source_tokens)
        return _with_a_column(ids), source_lengths

    @tf.function(input_signature=[_IDS, _IDS, _LENGTHS], autograph=False)
    def _scores_in_graph(self, sources, ids, lengths):
        return self._scores(sources, ids, lengths)

    def _scores(self, sources, ids, lengths):
        ids = _with_a_column(ids)  # [B, T]
        start = tf.fill([tf.shape(ids)[0], 1], self._start_id)
        before = tf.concat([start, ids[:, :-1]], axis=1)
        hidden = self._step.read_whole({"source": sources, "target": before})
        words = self.target.vocabulary.words(ids)
        return score_words(self._step.head, hidden, ids, words, lengths)

    @tf.function(input_signature=[_IDS, _LENGTHS], autograph=False)
    def _search_in_graph(self, ids, source_lengths):
        return self._search(ids, source_lengths)

    def _search(self, ids, source_lengths):
        lengths = tf.minimum(source_lengths, self.max_source_tokens)
        longest = tf.cast(tf.cast(lengths, tf.float32) * self.max_ratio, tf.int32) + 10
        longest = tf.minimum(longest, self.max_tokens) + 1  # and the start
        width = tf.reduce_max(tf.concat([longest, [1]], 0))
        start = tf.fill([tf.shape(ids)[0], 1], self._start_id)
        return self.search(
            self._step,
            tf.pad(start, [[0, 0], [0, width - 1]]),
            lengths=tf.ones_like(lengths),
            inputs={"source": ids},
            max_lengths=longest,
            end_token=self.target.vocabulary.end_id,
            forbidden_tokens=self._forbidden,
            constraints=self.constraints,
        )

    def written(self, beams: Beams) -> tf.Tensor:
        """Ids `[B, n, L]` of answers without their start, end tokens after them."""
        tokens = beams.tokens[:, :, 1:]
        is_written = tf.sequence_mask(beams.lengths - 1, tf.shape(tokens)[2])
        return tf.where(is_written, tokens, self.target.vocabulary.end_id)

    def _texts(self, source_lengths, beams):
        """Answers `[B, n]`, empty where there was nothing to answer, or no answer left."""
        is_empty = (source_lengths <= 1)[:, None] | tf.math.is_inf(beams.scores)
        return tf.where(is_empty, "", self.target.decode(self.written(beams)))

    @property
    def weights(self) -> list:
        """The variables of inference."""
        return self._step.variables

    def signatures(self) -> dict:
        """The functions a server offers, by name."""
        return {
            "serving_default": self.translate,
            "translate": self.translate,
            "examples": self.examples,
        }


def _with_a_column(ids):
    """Ids `[B, T]` with one column at least: without any rows there would be none to read."""
    return tf.pad(ids, [[0, 0], [0, tf.cast(tf.shape(ids)[1] == 0, tf.int32)]])


def export_translator(
    model: Any,
    directory: str | os.PathLike,
    source: tuple[Tokenizer, Vocabulary],
    target: tuple[Tokenizer, Vocabulary],
    *,
    version: int | None = None,
    warmup_texts: tuple[str, ...] = ("",),
    weights: str = "float32",
    card: ModelCard | None = None,
    **options: Any,
) -> Path:
    """Exports an encoder–decoder as a SavedModel that takes sources and gives answers as text.

    The model is written as `directory/<version>/` with the signatures `translate`, which is
    `serving_default` too, and `examples`, which `Translator` documents; see `export_saved_model`
    for what it holds and how it appears.

    Args:
        model: A built `keras_drill.SequenceToSequence`.
        directory: The model's folder, `saved_models/<name>`; made when missing.
        source: Tokenizer and vocabulary of the sources.
        target: Those of the targets.
        version: A positive integer that is not there yet. Defaults to one more than the greatest.
        warmup_texts: Sources that TensorFlow Serving sends before the model takes requests; none
            writes no warm-up file.
        weights: As in `export_saved_model`.
        card: As in `export_saved_model`.
        **options: `search`, `max_source_tokens`, `max_tokens`, `max_ratio` and `constraints` of
            `Translator`.

    Returns:
        The version's folder.
    """
    with new_version(directory, version) as folder:
        sides = []
        for name, (tokenizer, vocabulary) in {"source": source, "target": target}.items():
            path = folder / "words" / f"{name}-vocabulary.txt"
            vocabulary.save(path)
            sides.append(Side(tokenizer, AssetVocabulary(vocabulary, path)))
        module = Translator(model, *sides, **options)
        resources = tf.Module()
        resources.source, resources.target = sides
        with portable_kernels(model.backbone):
            signatures = served_signatures(module, weights)
            write_module(signatures, resources, folder.model, warmup_texts, card)
    return folder.published
