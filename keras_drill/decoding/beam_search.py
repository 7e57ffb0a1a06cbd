"""Beam search for the most probable sequences."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.rows import Rows
from keras_drill.decoding.search import Loop, Search
from keras_drill.ops.top_k import top_k
from keras_drill.types import Tensor


class Beams(NamedTuple):
    """Result of a beam search: the n best sequences for each of B prompts, the best first.

    L is the maximum length of a sequence with its prompt, and S the number of source positions.

    Attributes:
        tokens: Integer tensor `[B, n, L]`: prompt, generated tokens (with the end token), padding.
        lengths: Integer tensor `[B, n]`: number of tokens with the prompt, without padding.
        scores: Float32 tensor `[B, n]`: the scores that rank sequences, see `BeamSearch`; negative
            infinity for missing sequences, if the search found fewer than n.
        log_probs: Float32 tensor `[B, n]`: log-probability of all generated tokens of a sequence,
            after constraints changed the probabilities of words.
        word_log_probs: Float32 tensor `[B, n, L]`: log-probability of each generated token by the
            model, before constraints; 0 for prompt and padding.
        attention: Float32 tensor `[B, n, L, S]`: attention of each word to each position of the
            source; 0 for prompt and padding. S is 0 unless the search returns attention.
    """

    tokens: Any
    lengths: Any
    scores: Any
    log_probs: Any
    word_log_probs: Any
    attention: Any


class _Memory(NamedTuple):
    """The state of the search for its beams.

    Attributes:
        totals: `[R]`, log-probability of the words that each beam generated.
        scores: `[R]`, the scores by which beams were chosen.
    """

    totals: Any
    scores: Any


@keras.saving.register_keras_serializable(package="keras_drill")
class BeamSearch(Search):
    """Beam search: keeps the K best sequences at every step, and continues all of them.

    Pass the search to `keras_drill.decoding.generate` as `sampler`, or call the search with the
    arguments of `Search.__call__`.

    A beam is one of these K = `num_beams` sequences. Let y be the generated words of a beam, and
    p(y) their probability after the prompt. Beams are ranked by their score:

        score(y) = log p(y) / ((5 + |y|) / 6) ** length_penalty + coverage_penalty * coverage(y)
        coverage(y) = Σ_i log(min(Σ_j attention_ji, 1))

    |y| is the number of generated words, including the end token. attention_ji is the attention of
    generated word j to source word i. The coverage lowers the score of translations that ignore
    words of the source. At every step, the K best continuations of all beams of a prompt become the
    new beams of this prompt. A finished beam stays unchanged while it is among the best.

    The search stops when no unfinished beam can exceed the score of the finished beams that it
    returns. This is known early, since the log-probability of a beam can only decrease. The results
    are the same as for a search to the maximum length.

    With `num_groups` above 1 (diverse beam search), the beams form groups of equal size. Each step
    chooses the beams of the groups in turn. For this choice, the score of a continuation is lowered
    by `diversity` for each beam of a previous group that has chosen the same word at this step.

    Args:
        num_beams: Number of beams K of each prompt.
        length_penalty: Exponent in the score. 0 ranks by log-probability, which prefers short
            sequences. Larger values prefer longer sequences.
        num_results: Number n of beams to return for each prompt; `None` returns all K beams.
        num_groups: Number of groups of beams, a divisor of `num_beams`.
        diversity: How much a score is lowered, see above; not negative. Only used if `num_groups`
            is above 1.
        coverage_penalty: Factor of the coverage, not negative, for models that attend to a source.
            A sum of attention below 1e-30 is replaced by 1e-30, so that its logarithm is finite.
        return_attention: Whether the results contain the attention. With a coverage penalty they
            always do.

    Raises:
        ValueError: An argument is out of range. A call of the search raises `ValueError` if
            `coverage_penalty` or `return_attention` is used with a model that returns no attention.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.decoding import BeamSearch
    >>> backbone = keras_drill.models.AWDLSTM(11, embedding_dim=4, units=5, num_layers=1)
    >>> model = keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(11))
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> step = keras_drill.decoding.LanguageModelStep(model)
    >>> search = BeamSearch(num_beams=3, length_penalty=0.6, num_results=2)
    >>> beams = search(step, [[1, 0, 0, 0], [2, 0, 0, 0]], lengths=[1, 1], end_token=2)
    >>> tuple(beams.tokens.shape), tuple(beams.scores.shape)
    ((2, 2, 4), (2, 2))

    References:
        - [Wu et al., 2016](https://arxiv.org/abs/1609.08144), section 7 (length penalty, coverage)
        - [Vijayakumar et al., 2016](https://arxiv.org/abs/1610.02424) (groups)
    """

    def __init__(
        self,
        num_beams: int = 5,
        length_penalty: float = 0.0,
        num_results: int | None = None,
        num_groups: int = 1,
        diversity: float = 0.5,
        coverage_penalty: float = 0.0,
        return_attention: bool = False,
    ):
        if not isinstance(num_beams, int) or num_beams < 1:
            raise ValueError(
                f"`num_beams` must be a positive integer. Received: num_beams={num_beams!r}"
            )
        if num_results is not None and not 1 <= num_results <= num_beams:
            raise ValueError(
                f"`num_results` must be from 1 to `num_beams`={num_beams}. "
                f"Received: num_results={num_results!r}"
            )
        if num_groups < 1 or num_beams % num_groups:
            raise ValueError(
                f"`num_groups` must divide `num_beams`={num_beams}. "
                f"Received: num_groups={num_groups!r}"
            )
        if not np.isfinite(length_penalty) or not 0 <= diversity < float("inf"):
            raise ValueError(
                "`length_penalty` must be finite, `diversity` finite and not negative. Received: "
                f"length_penalty={length_penalty!r}, diversity={diversity!r}"
            )
        if not 0 <= coverage_penalty < float("inf"):
            raise ValueError(
                "`coverage_penalty` must be finite and not negative. "
                f"Received: coverage_penalty={coverage_penalty!r}"
            )
        self.num_beams = num_beams
        self.length_penalty = length_penalty
        self.num_results = num_results
        self.num_groups = num_groups
        self.diversity = diversity
        self.coverage_penalty = coverage_penalty
        self.return_attention = return_attention

    @property
    def needs_attention(self) -> bool:
        return self.return_attention or self.coverage_penalty > 0

    def begin(
        self, step: DecodingStep, tokens: Tensor, lengths: Tensor, **arguments: Any
    ) -> tuple[Loop, tuple[Rows, Any, Any]]:
        """Begins a search as `Search.begin` does. `memory` contains the initial scores of beams.

        The search has R = B · K rows: K beams for each of B prompts. See `Search.begin` for the
        arguments and the result.
        """
        loop, (rows, state, _) = super().begin(step, tokens, lengths, **arguments)
        # All beams of a group are equal at first, so only the first one may be continued.
        places = np.arange(self.num_beams) % (self.num_beams // self.num_groups)
        first = np.where(places == 0, 0.0, -np.inf).astype("float32")
        totals = ops.tile(first, (ops.shape(rows.tokens)[0] // self.num_beams,))  # [R]
        return loop, (rows, state, _Memory(totals=totals, scores=totals))

    @property
    def is_listing(self) -> bool:
        # With groups, the score of a word depends on other rows, and a subclass may need all words.
        return self.num_groups == 1 and type(self).extend is BeamSearch.extend

    def extend(self, log_probs: Tensor, rows: Rows, memory: Any) -> tuple[Any, Any, Any]:
        return self.extend_listed(*self.shortlist(log_probs, rows), rows, memory)

    def extend_listed(
        self, log_probs: Tensor, words: Tensor, rows: Rows, memory: Any
    ) -> tuple[Any, Any, Any]:
        num_choices = log_probs.shape[-1]
        # A finished beam has a single continuation, at no cost.
        stays = ops.where(ops.arange(num_choices) == 0, 0.0, -np.inf)
        log_probs = ops.where(rows.finished[:, None], stays, log_probs)
        candidates = memory.totals[:, None] + log_probs
        scores = candidates / self.penalty(self.count_words(rows, words))
        if self.coverage_penalty:
            scores = scores + self.coverage_penalty * self.coverage(rows)[:, None]
        best = self._best(scores, rows.finished)  # [B, K]

        def chosen(x):
            x = ops.reshape(x, (-1, self.num_beams * num_choices))
            return ops.reshape(ops.take_along_axis(x, best, axis=1), (-1,))

        memory = memory._replace(
            totals=ops.where(rows.is_in_prompt, memory.totals, chosen(candidates)),
            scores=ops.where(rows.is_in_prompt, memory.scores, chosen(scores)),
        )
        first_rows = self.num_beams * ops.arange(ops.shape(best)[0], dtype="int32")[:, None]
        parents = ops.reshape(first_rows + best // num_choices, (-1,))
        return parents, chosen(words), memory

    def result(self, rows: Rows, memory: Any) -> Beams:
        scores = ops.reshape(memory.scores, (-1, self.num_beams))
        scores, best = top_k(scores, self.num_results or self.num_beams)  # [B, n]

        def take(x):
            x = ops.reshape(x, (ops.shape(best)[0], self.num_beams, *ops.shape(x)[1:]))
            index = ops.reshape(best, (*ops.shape(best), *[1] * (len(x.shape) - 2)))
            return ops.take_along_axis(x, index, axis=1)

        return Beams(
            take(rows.tokens),
            take(rows.lengths),
            scores,
            take(memory.totals),
            take(rows.log_probs),
            take(rows.attention),
        )

    def shortlist(self, scores: Tensor, rows: Rows, spare: int = 0) -> tuple[Tensor, Tensor]:
        """Selects the C words with which each row (beam) may be continued.

        These are the K + `spare` most probable words of the row. If `num_groups` is above 1, they
        are all words.

        Args:
            scores: Floats `[R, V]`, log-probabilities or logits of V words for R rows.
            rows: The `Rows` so far.
            spare: Number of words to select in addition to K. The search passes the number of
                forbidden words, which may be among the most probable words.

        Returns:
            The scores and the ids of the selected words, `[R, C]` each, the row's best word first.
            If `num_groups` is above 1, the words are in the order of their ids.
        """
        num_words = scores.shape[-1]
        if self.num_groups > 1:
            words = ops.arange(num_words, dtype="int32")
            return scores, ops.broadcast_to(words, ops.shape(scores))
        best, words = top_k(scores, min(self.num_beams + spare, num_words))
        return best, ops.cast(words, "int32")

    def count_words(self, rows: Rows, words: Tensor) -> Any:
        """Returns the length |y| of each row with its next word, for the length penalty.

        A finished row has no next word, so its length stays.

        Args:
            rows: The `Rows` so far, R rows.
            words: Ids `[R, C]` of C possible next words of each row.

        Returns:
            Integers `[R, C]`, or `[R, 1]` if the length does not depend on the word.
        """
        written = rows.lengths - rows.prompt_lengths
        return (written + ops.cast(ops.logical_not(rows.finished), "int32"))[:, None]

    def penalty(self, count: Tensor) -> Tensor:
        """Returns `((5 + count) / 6) ** length_penalty`, floats of the shape of `count`.

        Args:
            count: Lengths |y| of sequences, see `count_words`.
        """
        return ((5.0 + ops.cast(count, "float32")) / 6.0) ** self.length_penalty

    def coverage(self, rows: Rows) -> Any:
        """Returns each row's `coverage(y)`, floats `[R]`: 0 if all source words are covered, else
        negative.
        """
        looks = ops.sum(rows.attention, axis=1)  # [R, S]
        looks = ops.minimum(ops.maximum(looks, 1e-30), 1.0)
        return ops.sum(ops.where(rows.source_mask, ops.log(looks), 0.0), axis=-1)

    def _best(self, scores, finished):
        """Chooses the continuations that become beams: indices `[B, K]` below `K · C`.

        In each group, the best continuation comes first.
        """
        num_words = scores.shape[-1]
        size = self.num_beams // self.num_groups
        groups = ops.reshape(scores, (-1, self.num_groups, size, num_words))
        finished = ops.reshape(finished, (-1, self.num_groups, size, 1))
        chosen, counts = [], None
        for group in range(self.num_groups):
            of_group = groups[:, group]  # [B, K / G, V]
            if counts is not None:
                cost = ops.where(finished[:, group], 0.0, self.diversity * counts[:, None])
                of_group = of_group - cost
            best = top_k(ops.reshape(of_group, (-1, size * num_words)), size)[1]
            best = ops.cast(best, "int32")
            chosen.append(best + group * size * num_words)
            if group + 1 < self.num_groups:
                words = ops.one_hot(best % num_words, num_words, dtype="float32")
                from_live = ops.take_along_axis(finished[:, group], best[..., None] // num_words, 1)
                words = ops.where(from_live, 0.0, words)  # finished beams choose no word
                words = ops.sum(words, axis=1)  # [B, V]
                counts = words if counts is None else counts + words
        return ops.concatenate(chosen, axis=1)

    def is_done(self, rows: Rows, memory: Any) -> Tensor:
        written = rows.lengths - rows.prompt_lengths
        # Upper bound on the score of an unfinished beam: no further loss of log-probability, and
        # complete coverage.
        last = rows.max_lengths - rows.prompt_lengths if self.length_penalty > 0 else written + 1
        bounds = memory.totals / self.penalty(ops.maximum(last, written + 1))
        bounds = ops.where(rows.finished, -np.inf, bounds)
        scores = ops.where(rows.finished, memory.scores, -np.inf)
        bounds, scores = (ops.reshape(x, (-1, self.num_beams)) for x in (bounds, scores))
        worst_result = ops.top_k(scores, self.num_results or self.num_beams)[0][:, -1]
        best_bound = ops.max(bounds, axis=1, initial=-np.inf)
        return ops.all(worst_result >= best_bound)  # -inf: there is nothing else

    def may_win(self, rows: Rows, memory: Any) -> Any:
        return memory.totals > -np.inf

    def get_config(self) -> dict:
        return {
            "num_beams": self.num_beams,
            "length_penalty": self.length_penalty,
            "num_results": self.num_results,
            "num_groups": self.num_groups,
            "diversity": self.diversity,
            "coverage_penalty": self.coverage_penalty,
            "return_attention": self.return_attention,
        }

    @classmethod
    def from_config(cls, config: dict) -> "BeamSearch":
        return cls(**config)
