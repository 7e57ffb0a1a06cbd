from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.types import Tensor

USAGE_BY = ("posterior", "probability")


@keras.saving.register_keras_serializable(package="keras_drill")
class SenseAllocation(keras.layers.Layer):
    """Stores the word of each sense, and how much each sense is used.

    A sense is one of several output embeddings of a word. This layer is the attribute `allocation`
    of `keras_drill.KernelizedBayesianSoftmax`, which shares it with a tied input embedding. The
    number of senses and all shapes are fixed. The word of a sense may change in training, without
    recompilation.

    An interval is the training steps between two reallocations of senses. `record` adds the tokens
    of a step to the sums of the present interval, over all replicas of `tf.distribute`. At the end
    of the interval, the callback `keras_drill.SenseReallocation` updates the running averages with
    the sums, moves senses according to averages and sums, and sets the sums to 0.

    Shape letters: V words, M senses, S most senses that a word may have, N tokens. All attributes
    without a dtype are float32.

    Attributes:
        sense_to_word: `[M]` int32, the word of every sense.
        senses_of_word: `[V, S]` int32, the senses of every word, padded with -1. `assign` updates
            this variable together with `sense_to_word`.
        usage: `[M]`, each sense's usage, a running average of its probability; see `usage_by`.
        word_log_prob: `[V]`, running average of a word's log-probability at tokens whose target is
            the word; 0 for words that have not occurred.
        word_count: `[V]`, how often each word was the target in the present interval.
        log_prob_sum, prob_sum: `[V]`, sums of a word's log-probability and of its probability, over
            the tokens that `word_count` counts.
        usage_sum: `[M]`, sum of the probabilities that `usage` averages, over all tokens of the
            present interval.

    Args:
        vocabulary_size: Number of words V.
        num_senses: Number of senses M of all words together; `None` is three per word.
        min_senses: Fewest senses that a word may have.
        max_senses: Most senses S that a word may have.
        dynamic: Whether senses may move between words. With `False`, no statistics are collected,
            and the attributes `word_count`, `log_prob_sum`, `prob_sum` and `usage_sum` are missing.
        usage_by: Probability that `usage` averages over all tokens, with 0 at tokens whose target
            is another word: "posterior", the probability of the sense given the target, or
            "probability", the probability of the sense among the senses of all words, as in
            equation 13 of Miao et al.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Raises:
        ValueError: `num_senses` is not from `min_senses * vocabulary_size` to
            `max_senses * vocabulary_size`, or another argument is out of range.

    Example:

    >>> allocation = keras_drill.senses.SenseAllocation(5, num_senses=7, max_senses=3)
    >>> np.asarray(allocation.sense_to_word)
    array([0, 1, 2, 3, 4, 0, 1], dtype=int32)
    >>> allocation.assign([0, 1, 2, 3, 4, 3, 3])
    >>> np.asarray(allocation.senses_of_word)[3]
    array([3, 5, 6], dtype=int32)

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274), section 3.3
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_senses: int | None = None,
        min_senses: int = 1,
        max_senses: int = 4,
        dynamic: bool = True,
        usage_by: str = "posterior",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if usage_by not in USAGE_BY:
            raise ValueError(
                f"`usage_by` must be one of {USAGE_BY}. Received: usage_by={usage_by!r}"
            )
        num_senses = 3 * vocabulary_size if num_senses is None else num_senses
        if not 1 <= min_senses <= max_senses:
            raise ValueError(
                "`min_senses` must be at least 1 and at most `max_senses`. "
                f"Received: min_senses={min_senses}, max_senses={max_senses}"
            )
        if not min_senses * vocabulary_size <= num_senses <= max_senses * vocabulary_size:
            raise ValueError(
                "`num_senses` must be the number of senses of all words together, from "
                f"{min_senses * vocabulary_size} to {max_senses * vocabulary_size}: each of the "
                f"{vocabulary_size} words has {min_senses} to {max_senses} senses. "
                f"Received: num_senses={num_senses}"
            )
        self.vocabulary_size = vocabulary_size
        self.num_senses = num_senses
        self.min_senses = min_senses
        self.max_senses = max_senses
        self.dynamic = dynamic
        self.usage_by = usage_by

        sense_to_word = self.initial_sense_to_word
        self.sense_to_word = self._state("sense_to_word", sense_to_word)
        self.senses_of_word = self._state("senses_of_word", self._table(sense_to_word))
        self.usage = self._state("usage", np.full(num_senses, 1 / num_senses, "float32"))
        self.word_log_prob = self._state("word_log_prob", np.zeros(vocabulary_size, "float32"))
        if dynamic:
            self.word_count = self._sum("word_count", vocabulary_size)
            self.log_prob_sum = self._sum("log_prob_sum", vocabulary_size)
            self.prob_sum = self._sum("prob_sum", vocabulary_size)
            self.usage_sum = self._sum("usage_sum", num_senses)
        self.built = True

    def _state(self, name: str, value: np.ndarray):
        return self.add_weight(
            name=name,
            shape=value.shape,
            dtype=str(value.dtype),
            initializer=lambda shape, dtype: ops.convert_to_tensor(value, dtype),
            trainable=False,
            autocast=False,
        )

    def _sum(self, name: str, size: int):
        # With `add_weight`, the sum over replicas would count the old total once per replica.
        return keras.Variable(
            lambda shape, dtype: ops.zeros(shape, dtype),
            shape=(size,),
            dtype="float32",
            trainable=False,
            autocast=False,
            aggregation="sum",
            synchronization="on_read",
            name=name,
        )

    @property
    def initial_sense_to_word(self) -> np.ndarray:
        """`sense_to_word` before any sense moves: sense j belongs to word j modulo V."""
        return np.arange(self.num_senses, dtype="int32") % self.vocabulary_size

    def columns(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Looks up the senses of words.

        Args:
            words: `[...]` integers.

        Returns:
            The senses of each word, `[..., S]` int32, ascending and padded with 0, and a mask
            `[..., S]`, False for padding.
        """
        senses = ops.take(self.senses_of_word, words, axis=0)
        mask = senses >= 0
        return ops.where(mask, senses, ops.zeros_like(senses)), mask

    def record(
        self, targets: Tensor, log_probs: Tensor, posteriors: Tensor, weights: Tensor | None = None
    ) -> None:
        """Adds tokens to the sums of the present interval. The output layer calls this method.

        Args:
            targets: `[N]` integers, the words.
            log_probs: `[N]`, log-probabilities of the targets.
            posteriors: `[N, S]`, probabilities of the target's senses given the target, in the
                order of `columns(targets)`, padded with 0.
            weights: `[N]`, the sample weights, or `None`. Tokens of weight 0 are ignored. All
                other tokens count equally in all sums, whatever their weight.
        """
        log_probs, posteriors = ops.cast(log_probs, "float32"), ops.cast(posteriors, "float32")
        counted = ops.ones_like(log_probs)
        if weights is not None:
            counted = ops.cast(weights != 0, "float32")
        columns, _ = self.columns(targets)

        def by_word(values):
            return ops.segment_sum(counted * values, targets, self.vocabulary_size)

        self.word_count.assign_add(by_word(ops.ones_like(counted)))
        self.log_prob_sum.assign_add(by_word(log_probs))
        self.prob_sum.assign_add(by_word(ops.exp(log_probs)))
        if self.usage_by == "probability":
            posteriors = ops.exp(log_probs)[:, None] * posteriors
        usage = ops.reshape(counted[:, None] * posteriors, (-1,))
        self.usage_sum.assign_add(
            ops.segment_sum(usage, ops.reshape(columns, (-1,)), self.num_senses)
        )

    def assign(self, sense_to_word: Tensor) -> None:
        """Assigns every sense to a word. Call this method outside compiled functions.

        Embeddings, usage and statistics stay unchanged.

        Args:
            sense_to_word: `[M]` integers in [0, V), the word of every sense.

        Raises:
            ValueError: A word would have fewer than `min_senses` or more than `max_senses` senses,
                or `sense_to_word` has another shape or other numbers.
        """
        sense_to_word = np.asarray(sense_to_word)
        if sense_to_word.shape != (self.num_senses,):
            raise ValueError(
                f"`sense_to_word` must have shape ({self.num_senses},). "
                f"Received: sense_to_word of shape {sense_to_word.shape}"
            )
        if sense_to_word.min() < 0 or sense_to_word.max() >= self.vocabulary_size:
            raise ValueError(
                f"`sense_to_word` must contain words in [0, {self.vocabulary_size}). Received: "
                f"words from {sense_to_word.min()} to {sense_to_word.max()}"
            )
        counts = np.bincount(sense_to_word, minlength=self.vocabulary_size)
        wrong = np.flatnonzero((counts < self.min_senses) | (counts > self.max_senses))
        if wrong.size:
            raise ValueError(
                f"`sense_to_word` must give every word {self.min_senses} to {self.max_senses} "
                f"senses. Received: {counts[wrong[0]]} senses for word {wrong[0]}"
            )
        sense_to_word = sense_to_word.astype("int32")
        self.senses_of_word.assign(self._table(sense_to_word))
        self.sense_to_word.assign(sense_to_word)

    def _table(self, sense_to_word: np.ndarray) -> np.ndarray:
        """Returns `[V, S]`, the senses of every word in ascending order, padded with -1."""
        by_word = np.argsort(sense_to_word, kind="stable")
        words = sense_to_word[by_word]
        first = np.searchsorted(words, np.arange(self.vocabulary_size))
        table = np.full((self.vocabulary_size, self.max_senses), -1, "int32")
        table[words, np.arange(self.num_senses) - first[words]] = by_word
        return table

    @property
    def arguments(self) -> dict:
        """Dictionary of the constructor arguments, without those of `keras.layers.Layer`."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "num_senses": self.num_senses,
            "min_senses": self.min_senses,
            "max_senses": self.max_senses,
            "dynamic": self.dynamic,
            "usage_by": self.usage_by,
        }

    def get_config(self) -> dict:
        return {**super().get_config(), **self.arguments}
