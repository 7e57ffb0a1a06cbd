"""An encoder–decoder from source texts to target texts.

Shapes: B texts, S words of the longest text, n outputs for each, L words of the longest output.
"""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_drill.data.truncate import check_truncation_side
from keras_drill.decoding import Beams, BeamSearch, Constraint, LanguageModelStep, Search
from keras_drill.export.answers import Answers, copied_words
from keras_drill.export.examples import read_texts
from keras_drill.export.score_words import score_words
from keras_drill.export.side import Side
from keras_drill.export.translation_search import (
    TokenRows,
    TranslationSearch,
    changed,
    check_positions,
)

_TEXTS, _PREFIXES, _EXAMPLES = (
    tf.TensorSpec([None], tf.string, name) for name in ("texts", "prefixes", "examples")
)
_IDS = tf.TensorSpec([None, None], tf.int32)
_LENGTHS = tf.TensorSpec([None], tf.int32)


class Translator(tf.Module):
    """An encoder–decoder with text as input and output, with its tokenizers and vocabularies.

    `export_translator` writes such a model as a SavedModel. Use this class to call the model in the
    current process. The outputs for a text do not depend on the rest of the batch. Line breaks are
    read as spaces. Sources may contain unknown words, but outputs never contain the unknown token.
    An empty text has one output, the empty text, with log-probability 0. Texts and words are
    strings, lengths and ids are int32, and scores, log-probabilities and perplexities are float32.

    With a beam search, all outputs for a source are different texts. Beams with different tokens
    can be the same text. The next best beams then replace such duplicates. If too few texts remain,
    a second `BeamSearch` with twice as many beams and `num_groups=1` (no diverse groups) supplies
    more. With a sampler, outputs are drawn independently, so they can be equal.

    Shape letters: B texts, n outputs for each text (see `num_answers`), L tokens of the longest
    output, S tokens of the longest source, T words of the longest target (with the end token).

    Args:
        model: A `keras_drill.SequenceToSequence`.
        source: `Side` with the tokenizer and the vocabulary of the sources.
        target: `Side` with the tokenizer and the vocabulary of the targets; may be the same object.
        search: Search for the outputs, a `keras_drill.decoding.BeamSearch` or `Sampler`. The
            default is `BeamSearch(5, length_penalty=1.0, num_results=1)`.
        max_source_tokens: Longer sources are truncated to this number of tokens, with the end
            token. The limit may be higher than in training if the encoder is recurrent or has
            sinusoidal positions.
        max_tokens: Largest number of tokens of an output, with the end token.
        max_ratio: Limits an output to 10 tokens plus this number for each token of its source. A
            `MinLength` constraint raises the limit if necessary. With `None`, only `max_tokens`
            limits outputs.
        constraints: List of `keras_drill.decoding.Constraint`s that every output must satisfy.
        truncation_side: Side at which long sources are truncated: `"right"` removes their end,
            `"left"` their beginning.
        turn_separator: The word between the turns of a dialogue, `None` for texts without turns.
            In long sources, the oldest turns are dropped first. The argument is ignored with
            `truncation_side="right"`, or if the word is not a token of the source's vocabulary.
        replace_unknown: Whether the model may generate the unknown token, which is then replaced by
            the source word with the most attention. Requires a model with attention to the source,
            and beam search.
        seed: Seed of a sampler, from 0 to 2**32 - 1. A beam search ignores `seed` and
            `num_samples`.
        num_samples: Number of outputs that a sampler draws for each text.

    Raises:
        ValueError: An argument is out of range, `target` does not have the model's number of words,
            or the model has fewer learned positions than `max_source_tokens` or `max_tokens`. Or
            `replace_unknown` is set without attention to the source, or without beam search.

    Example:

    >>> from keras_drill.data import Vocabulary, WhitespaceTokenizer
    >>> from keras_drill.export import Side, Translator
    >>> vocabulary = Vocabulary(["<pad>", "<unk>", "<eos>", "<sos>", "ein", "a", "Haus", "house"])
    >>> side = Side(WhitespaceTokenizer(), vocabulary)
    >>> backbone = keras_drill.models.RecurrentEncoderDecoder(8, 4, units=5)
    >>> model = keras_drill.SequenceToSequence(backbone, keras_drill.OutputLayer(8))
    >>> translator = Translator(model, side, side)
    >>> answers = translator.translate(["ein Haus", ""])
    >>> answers["texts"].shape, answers["scores"].shape
    (TensorShape([2, 1]), TensorShape([2, 1]))
    >>> [[text]] = translator.complete(["ein Haus"], ["a house"])["texts"].numpy()
    >>> text[:7]
    b'a house'
    """

    def __init__(
        self,
        model: Any,
        source: Side,
        target: Side,
        search: Search | None = None,
        max_source_tokens: int = 256,
        max_tokens: int = 100,
        max_ratio: float | None = 2.0,
        constraints: Sequence[Constraint] = (),
        truncation_side: str = "right",
        turn_separator: str | None = None,
        replace_unknown: bool = False,
        seed: int = 0,
        num_samples: int = 1,
    ):
        super().__init__(name="translator")
        # Stored in a plain object, since tf.Module would track and export every variable of a
        # layer.
        self._step = LanguageModelStep(model)
        if self._step.vocabulary_size != len(target.vocabulary):
            raise ValueError(
                f"`target` must have the model's {self._step.vocabulary_size} words. "
                f"Received: {len(target.vocabulary)} words"
            )
        limits = {
            "max_source_tokens": max_source_tokens,
            "max_tokens": max_tokens,
            "max_ratio": math.inf if max_ratio is None else max_ratio,
            "num_samples": num_samples,
        }
        for name, value in limits.items():
            if not value > 0:
                raise ValueError(f"`{name}` must be positive. Received: {name}={value!r}")
        check_positions(model.backbone, max_source_tokens, max_tokens)
        check_truncation_side(truncation_side, "truncation_side")
        self.source = source
        self.target = target
        self.search = BeamSearch(5, 1.0, num_results=1) if search is None else search
        self.max_source_tokens = max_source_tokens
        self.max_tokens = max_tokens
        self.max_ratio = max_ratio
        self.constraints = tuple(constraints)
        self.truncation_side = truncation_side
        self.turn_separator = turn_separator
        self.replace_unknown = replace_unknown
        self.seed = seed
        self.num_samples = num_samples
        if replace_unknown:
            self._prepare_to_copy(model.backbone)
        self._separator_id = None if turn_separator is None else source.separator_id(turn_separator)
        self._find = TranslationSearch(
            self._step,
            target.vocabulary,
            constraints,
            replace_unknown,
            max_source_tokens,
            max_tokens,
            max_ratio,
            seed,
            num_samples,
        )

    @property
    def num_answers(self) -> int:
        """The number n of outputs for a text.

        With a beam search, n is its `num_results`, or its `num_beams` if `num_results` is `None`.
        With a sampler, n is `num_samples`.
        """
        if isinstance(self.search, BeamSearch):
            return self.search.num_results or self.search.num_beams
        return self.num_samples

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def translate(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates texts.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Dictionary of
            `texts` `[B, n]`: the outputs, the best first (samples in the order of drawing). If
            there are fewer than n, the rest are missing and have the text `""`;
            `scores` `[B, n]`: the scores by which a beam search ranks outputs, such as
            log-probabilities divided by length penalties (with a sampler, `log_probs`); negative
            infinity for missing outputs;
            `log_probs` `[B, n]`: log-probabilities of the outputs; negative infinity for missing
            outputs;
            `lengths` `[B, n]`: numbers of tokens of the outputs, with the end token if it was
            generated; 0 for missing outputs;
            `is_truncated` `[B, n]`: booleans, whether an output reached the limit of `max_tokens`
            or `max_ratio` before its end;
            `source_lengths` `[B]`: numbers of tokens of the sources before truncation, with the end
            token.
        """
        return self._answers(texts, None, None)

    @tf.function(input_signature=[_TEXTS, _PREFIXES], autograph=False)
    def complete(self, texts: tf.Tensor, prefixes: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates texts with a given prefix of each output.

        Args:
            texts: String tensor `[B]`.
            prefixes: String tensor `[B]`, with which the outputs begin, in whole words; `""` for no
                prefix.

        Returns:
            The dictionary of `translate`. Outputs begin with the prefixes, except those of empty
            texts, which are empty. The result `lengths` and the limits `max_tokens` and `max_ratio`
            include the prefixes, but `scores` and `log_probs` do not. A prefix beyond these limits
            is not truncated.
        """
        return self._answers(texts, prefixes, None)

    def answer(self, texts: Any, prefixes: Any = None, rows: Any = None) -> dict[str, tf.Tensor]:
        """Translates texts with any tokenizer, also one that runs only in Python.

        `translate` and `complete` always run in a graph, which such a tokenizer does not support.
        If you call this method in a `tf.function`, such a tokenizer raises an error.

        Args:
            texts: Strings `[B]`.
            prefixes: Strings `[B]`, see `complete`; `None` for no prefixes.
            rows: Integers `[B]`, the index of each text in the whole data set. A sampler draws
                different random numbers for different indices. With `None`, all texts use the same
                random numbers, so equal texts have equal outputs.

        Returns:
            The dictionary of `translate`.
        """
        if self.runs_in_graphs and rows is None:
            return self.translate(texts) if prefixes is None else self.complete(texts, prefixes)
        return self._answers(texts, prefixes, rows)

    def score(self, sources: Any, targets: Any) -> dict[str, tf.Tensor]:
        """Computes the log-probability of targets given their sources, word by word.

        Call this method eagerly. In exported models, use `examples` instead.

        Args:
            sources: Strings `[B]`.
            targets: Strings `[B]`, the targets to score, of any length. If the model has learned
                positions, words beyond their number get NaN.

        Returns:
            Dictionary of `words`, `log_probs`, `lengths`, `total_log_probs` and `perplexities` as
            in `examples`, and of `source_lengths` as in `translate`.
        """
        source = self._read(sources)
        told = self._scores_in_graph(source.ids, *self.target.encode(targets))
        return {**told, "source_lengths": source.lengths}

    @property
    def runs_in_graphs(self) -> bool:
        """Whether both tokenizers run in graphs, so that the model can be exported."""
        return self.source.tokenizer.runs_in_graphs and self.target.tokenizer.runs_in_graphs

    @tf.function(input_signature=[_EXAMPLES], autograph=False)
    def examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates the sources of serialized `tf.train.Example`s, and scores their targets.

        An example has a feature `source`, which is translated, and may have a feature `target`,
        which is scored given the source. Each feature is a single string.

        Args:
            examples: String tensor `[B]` of serialized examples. An example that cannot be parsed,
                or whose `source` or `target` is not a string, raises an error for the whole batch.

        Returns:
            Dictionary of
            `answers` `[B]`: the best output for each source (with a sampler, the first);
            `words` `[B, T]`: the words of the targets, with the unknown token for unknown words,
            and an end token;
            `log_probs` `[B, T]`: log-probability of each word given the source and the words before
            it;
            `lengths` `[B]`: numbers of words, with the end token, 0 without a target;
            `total_log_probs` `[B]`: sums of `log_probs`;
            `perplexities` `[B]`: exp(-total_log_probs / lengths), 0 without a target;
            `problems` `[B]`: an error message for each example that has no `source`, or a feature
            with several strings, else `""`. The other results of such an example are `""` or 0.
        """
        features, problems = read_texts(examples, ["source"], ["target"])
        source, target = features["source"], features["target"]
        read, prefix = self._read(source.texts), self._prefix(source.texts, None)
        beams = self._find(self.search, read, prefix)
        ids, lengths = self.target.encode(target.texts)
        lengths = tf.where(target.has & source.has, lengths, 0)
        return self._scores(read.ids, ids, lengths) | {
            "answers": self._outputs(read, prefix, beams).texts[:, 0],
            "problems": problems,
        }

    def find(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Beams]:
        """Runs the search for texts, without converting the outputs to text.

        Unlike in `translate`, several beams of a source may be the same text.

        Args:
            texts: String tensor `[B]`.

        Returns:
            Ids `[B, S]` of the truncated texts, the texts' numbers of tokens `[B]` before
            truncation, both with the end token, and the outputs as `keras_drill.decoding.Beams`.
        """
        source = self._read(texts)
        beams = self._find(self.search, source, self._prefix(texts, None))
        return source.ids, source.lengths, beams

    def _prepare_to_copy(self, backbone):
        """Makes the search return the attention to the source."""
        attends = hasattr(backbone, "read_column_with_attention")
        if not attends or getattr(backbone, "attention", True) is None:
            raise ValueError(
                "`replace_unknown` needs a model that attends to its source. Received: "
                f"{type(backbone).__name__} without attention"
            )
        if not isinstance(self.search, BeamSearch):
            raise ValueError(
                "`replace_unknown` needs a beam search, which returns the attention to the source. "
                f"Received: search={self.search!r}"
            )
        self.search = changed(self.search, return_attention=True)

    def _answers(self, texts, prefixes, rows):
        """Returns the dictionary of `translate`."""
        source, prefix = self._read(texts), self._prefix(texts, prefixes)
        if self.num_answers > 1 and isinstance(self.search, BeamSearch):
            answers = self._distinct(self.search, source, prefix)
        else:
            answers = self._outputs(source, prefix, self._find(self.search, source, prefix, rows))
        return {
            **answers.empty_where(source.lengths <= 1)._asdict(),
            "source_lengths": source.lengths,
        }

    def _distinct(self, search: BeamSearch, source: TokenRows, prefix: TokenRows) -> Answers:
        """Returns different outputs, from all beams and, if necessary, from a wider search."""
        number = self.num_answers
        beams = self._find(changed(search, num_results=None), source, prefix)
        answers = self._outputs(source, prefix, beams)
        width = 2 * search.num_beams
        wider = changed(search, num_beams=width, num_results=None, num_groups=1)

        def more():
            return self._outputs(source, prefix, self._find(wider, source, prefix))

        def none():
            shape = [tf.shape(answers.texts)[0], width]
            return Answers(*(tf.zeros(shape, each.dtype) for each in answers)).where(
                tf.zeros(shape, "bool")
            )

        found = tf.math.is_finite(answers.distinct(number).scores[:, -1])  # [B]
        is_enough = tf.reduce_all(found | (source.lengths <= 1))
        others = tf.cond(is_enough, none, more)
        pairs = zip(answers, others, strict=True)
        return Answers(*(tf.concat(pair, axis=1) for pair in pairs)).distinct(number)

    def _read(self, texts):
        ids, lengths, words = self.source.read(
            texts, self.max_source_tokens, self.truncation_side, self._separator_id
        )
        return TokenRows(_with_a_column(ids), lengths, words)

    def _prefix(self, texts, prefixes):
        """Converts prefixes to `TokenRows` without end tokens; they are empty without prefixes."""
        if prefixes is None:
            count = tf.shape(texts)[0]
            return TokenRows(tf.zeros([count, 0], "int32"), tf.zeros([count], "int32"), None)
        vocabulary = self.target.vocabulary
        ids, lengths, words = self.target.read(prefixes)
        # An end token inside a prefix does not end the output.
        ids = tf.where(ids == vocabulary.end_id, vocabulary.unknown_id, ids)
        return TokenRows(ids[:, :-1], lengths - 1, words[:, :-1])

    def _outputs(self, source, prefix, beams):
        """Converts beams to `Answers`."""
        ids = self.written(beams)  # [B, n, L]
        lengths = beams.lengths - 1
        last = tf.gather(ids, tf.maximum(lengths - 1, 0), batch_dims=2)
        is_full = lengths >= self._find.room(source, prefix)[:, None]
        answers = Answers(
            self.target.decode(ids, self._own_words(source, prefix, beams, ids)),
            beams.scores,
            beams.log_probs,
            lengths,
            is_full & (last != self.target.vocabulary.end_id),
        )
        return answers.where(tf.math.is_finite(beams.scores) & (source.lengths > 1)[:, None])

    def _own_words(self, source, prefix, beams, ids):
        """Returns words `[B, n, L]` that replace the vocabulary's words, else `""`; or `None`."""
        own = None
        if self.replace_unknown:
            lengths = tf.minimum(source.lengths, self.max_source_tokens)
            copied = copied_words(beams.attention[:, :, 1:], source.words, lengths)
            own = tf.where(ids == self.target.vocabulary.unknown_id, copied, "")
        if prefix.words is not None:
            shape = tf.shape(ids)
            rest = shape[2] - tf.shape(prefix.words)[1]
            given = tf.pad(prefix.words, [[0, 0], [0, rest]], constant_values="")[:, None]
            own = tf.where(given == "", "" if own is None else own, given)
            own = tf.broadcast_to(own, shape)
        return own

    @tf.function(input_signature=[_IDS, _IDS, _LENGTHS], autograph=False)
    def _scores_in_graph(self, sources, ids, lengths):
        return self._scores(sources, ids, lengths)

    def _scores(self, sources, ids, lengths):
        ids = _with_a_column(ids)  # [B, T]
        start = tf.fill([tf.shape(ids)[0], 1], self._find.start_id)
        before = tf.concat([start, ids[:, :-1]], axis=1)
        hidden = self._step.read_whole({"source": sources, "target": before})
        words = self.target.vocabulary.words(ids)
        return score_words(self._step.head, hidden, ids, words, lengths)

    def written(self, beams: Beams) -> tf.Tensor:
        """Returns ids `[B, n, L]` of the outputs that `find` returned as `beams`.

        The ids have no start token, and are padded with end tokens.
        """
        tokens = beams.tokens[:, :, 1:]
        is_written = tf.sequence_mask(beams.lengths - 1, tf.shape(tokens)[2])
        return tf.where(is_written, tokens, self.target.vocabulary.end_id)

    @property
    def weights(self) -> list:
        """List of the variables that inference reads. Shared variables occur twice."""
        return self._step.variables

    def signatures(self) -> dict:
        """The functions (signatures) of the exported model, a dictionary by name.

        The signatures `translate`, `complete` and `examples` are the methods of the same names.
        `serving_default`, for requests without the name of a signature, is `translate`.
        """
        return {
            "serving_default": self.translate,
            "translate": self.translate,
            "complete": self.complete,
            "examples": self.examples,
        }


def _with_a_column(ids):
    """Pads ids `[B, T]` to at least one column. An empty batch would have none."""
    return tf.pad(ids, [[0, 0], [0, tf.cast(tf.shape(ids)[1] == 0, tf.int32)]])
