import warnings
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.optimizers import reset_optimizer_rows
from keras_drill.senses.policies import AllocationPolicy, RankingPolicy, SenseStatistics
from keras_drill.senses.reallocation_history import ReallocationHistory

MOVED_EMBEDDINGS = ("keep", "near")
_NOISE = 0.1  # length of the noise of a restarted embedding, relative to the copied embedding


class SenseReallocator:
    """Moves little-used senses to words that need more senses, every `interval` training steps.

    In your own training loop, call `step` after every training step. With `fit`, use the callback
    `keras_drill.SenseReallocation`. A sense is one of several label vectors (output embeddings) of
    a word.

    The output layer's loss sums statistics over the tokens of an interval. At the end of the
    interval, the sums update two running averages, in which new values have the weight β
    (`momentum`): the log-probability of each word i, and the usage of each sense m.

        word_log_prob_i <- (1 - β)^n_i word_log_prob_i + (1 - (1 - β)^n_i) mean log p(i)
        usage_m         <- (1 - β)^Q   usage_m         + (1 - (1 - β)^Q)   mean q_m

    n_i is how often word i was the target in the interval of Q steps. The mean of log p(i) is over
    these occurrences, and the mean of q_m is over all tokens. q_m is the posterior probability of
    sense m given the target, which is 0 if m is a sense of another word. With
    `usage_by="probability"` of the head, q_m is the probability of m among all senses if m is a
    sense of the target, else 0, as in equation 13 of the paper and in the authors' code. Equation
    12, for log p(i), adds the new value without the weight β; this class uses the weight.

    Then the policy chooses the senses to move. Every moved sense is reset: the kernel's parameter θ
    and the optimizer's variables for this sense (such as its momentum) get their initial values,
    the usage becomes the mean usage, and the embedding is kept or replaced (see `moved_embedding`).
    The statistics of the next interval start at zero.

    If the head or its shared embedding is frozen (`trainable=False`), no statistics are collected
    and no senses move.

    All state except `history` is in the variables of the output layer and of the optimizer.

    Args:
        head: A `keras_drill.KernelizedBayesianSoftmax`, or an `OutputLayer` with the composition
            `MultiSense`, whose senses may move (`dynamic_allocation` or `dynamic` is `True`). The
            head may be tied and have any label encoder.
        optimizer: The `keras.optimizers.Optimizer` that trains the head. With `None`, no variables
            of an optimizer are reset.
        interval: Number of steps Q between reallocations.
        policy: A `keras_drill.senses.policies.AllocationPolicy`, which chooses the senses to move;
            `None` is `RankingPolicy()`.
        momentum: β, the weight of new values in the running averages, in (0, 1]. Momentum in Keras
            is the weight of the old value.
        moved_embedding: "keep" keeps the embedding of a moved sense. "near" replaces the embedding
            by the embedding of the new word's most used sense, plus a random vector that is a tenth
            as long. "near" also copies the bias of that sense.
        seed: Integer seed of these random vectors.

    Attributes:
        history: A list with one dictionary per reallocation, as in `keras_drill.SenseReallocation`.
        iteration: Iteration of the last `step`; `None` before the first one.

    Raises:
        ValueError: An argument is out of range, or the head's senses cannot move.

    Example:

    >>> head = keras_drill.KernelizedBayesianSoftmax(5, num_senses=7)
    >>> policy = keras_drill.senses.policies.ThresholdPolicy(-1.0)
    >>> reallocator = keras_drill.SenseReallocator(head, None, 2, policy, momentum=1.0)
    >>> hidden, targets = np.zeros((3, 4), "float32"), np.array([2, 2, 3])
    >>> for iteration in (1, 2):
    ...     loss = head.loss(hidden, targets)
    ...     record = reallocator.step(iteration)
    >>> record["senses"], record["to_words"]
    (array([0, 1]), array([2, 3]))

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274), equations 12 and 13, algorithm 1
    """

    def __init__(
        self,
        head: Any,
        optimizer: keras.optimizers.Optimizer | None = None,
        interval: int = 100,
        policy: AllocationPolicy | None = None,
        momentum: float = 0.1,
        moved_embedding: str = "keep",
        seed: int = 0,
    ):
        check_reallocation_arguments(interval, policy, momentum, moved_embedding, seed)
        allocation = getattr(getattr(head, "composition", None), "allocation", None)
        if allocation is None:
            raise ValueError(
                "`head` must be an output layer with several senses per word, such as "
                f"keras_drill.KernelizedBayesianSoftmax. Received: head={head!r}"
            )
        if not allocation.dynamic:
            raise ValueError(
                "`head` must be made with `dynamic_allocation=True` so that its senses can move. "
                f"Received: head={head!r} with dynamic_allocation=False"
            )
        self.head = head
        self.optimizer = optimizer
        self.interval = interval
        self.policy = RankingPolicy() if policy is None else policy
        self.momentum = momentum
        self.moved_embedding = moved_embedding
        self.seed = seed
        self.history = ReallocationHistory()
        self.iteration: int | None = None

    def step(self, iteration: int | None = None) -> dict[str, Any] | None:
        """Reallocates senses if this training step was the last one of an interval.

        Call this method after each training step. If you skip calls, the next call reallocates if
        the iteration has reached or passed a multiple of `interval` since the last call.

        Args:
            iteration: Number of training steps so far. `None` uses the `iterations` of the
                `optimizer`, and raises a `ValueError` without an optimizer.

        Returns:
            The new entry of `history`, or `None` without a reallocation.
        """
        iteration = self._iteration(iteration)
        previous = iteration - 1 if self.iteration is None else self.iteration
        self.iteration = iteration
        if iteration // self.interval <= previous // self.interval:
            return None
        return self.reallocate(iteration)

    def reallocate(self, iteration: int | None = None) -> dict[str, Any] | None:
        """Ends the interval now: updates the running averages and moves senses.

        `step` calls this method after the last step of an interval. Without tokens since the last
        reallocation, the method warns and moves no senses.

        Args:
            iteration: As in `step`. The history stores this number. The random vectors of
                `moved_embedding="near"` depend on this number and on `seed`.

        Returns:
            The new entry of `history`, with 0 moves if no senses move; or `None` if the head or its
            embedding is frozen.
        """
        iteration = self._iteration(iteration)
        if not self.head.learns_senses:
            return None
        allocation = self._allocation
        word_count = _read(allocation.word_count)
        if not word_count.any():
            warnings.warn(
                "No tokens were counted since the last reallocation, so no senses are moved. Only "
                "the output layer's own loss counts tokens in training (`head.loss`, "
                "`keras_drill.LanguageModel`). A Keras loss on its log-probabilities does not.",
                stacklevel=2,
            )
            senses = words = np.zeros(0, int)
        else:
            statistics = self._statistics(word_count)
            senses, words = self.policy.moves(statistics)
            self._apply(statistics, senses, words, iteration)
        sense_to_word = _read(allocation.sense_to_word)
        from_words = sense_to_word[senses]
        if len(senses):
            sense_to_word[senses] = words
            allocation.assign(sense_to_word)
        for total in self._sums:
            total.assign(ops.zeros(total.shape, total.dtype))
        counts = np.bincount(sense_to_word, minlength=allocation.vocabulary_size)
        self.history.record(
            iteration,
            word_count.sum(dtype="float64"),
            senses,
            from_words,
            words,
            np.bincount(counts, minlength=allocation.max_senses + 1),
        )
        return self.history[-1]

    @property
    def _allocation(self):
        return self.head.composition.allocation  # a loaded head may come to share another one

    @property
    def _sums(self):
        allocation = self._allocation
        return (
            allocation.word_count,
            allocation.log_prob_sum,
            allocation.prob_sum,
            allocation.usage_sum,
        )

    def _iteration(self, iteration):
        if iteration is not None:
            return int(iteration)
        if self.optimizer is None:
            raise ValueError(
                "`iteration` must be an integer if the reallocator has no optimizer. "
                "Received: iteration=None"
            )
        return int(ops.convert_to_numpy(self.optimizer.iterations))

    def _statistics(self, word_count) -> SenseStatistics:
        """Updates the running averages with the interval's sums, and returns the statistics."""
        allocation = self._allocation
        word_count, log_prob_sum, prob_sum, usage_sum = (
            _read(total).astype("float64") for total in self._sums
        )
        kept = (1 - self.momentum) ** word_count  # [V]
        mean = log_prob_sum / np.maximum(word_count, 1)
        word_log_prob = kept * _read(allocation.word_log_prob) + (1 - kept) * mean
        kept = (1 - self.momentum) ** self.interval
        usage = kept * _read(allocation.usage) + (1 - kept) * usage_sum / word_count.sum()
        word_log_prob, usage = word_log_prob.astype("float32"), usage.astype("float32")
        allocation.word_log_prob.assign(word_log_prob)
        allocation.usage.assign(usage)
        return SenseStatistics(
            _read(allocation.sense_to_word),
            usage,
            word_log_prob,
            word_count,
            prob_sum,
            allocation.min_senses,
            allocation.max_senses,
        )

    def _apply(self, statistics, senses, words, iteration):
        """Resets moved senses: usage, score parameters, embeddings and optimizer slots."""
        if not len(senses):
            return
        head, usage = self.head, statistics.usage.copy()
        usage[senses] = usage.mean(dtype="float64")
        self._allocation.usage.assign(usage)
        moved = np.zeros(len(usage), bool)
        moved[senses] = True
        for parameter, initializer in zip(
            head.score_parameters, head.score.parameter_initializers.values(), strict=True
        ):
            initial = keras.initializers.get(initializer)(parameter.shape, parameter.dtype)
            parameter.assign(ops.where(moved, initial, ops.convert_to_tensor(parameter)))
        if self.moved_embedding == "near":
            self._restart_near(statistics, senses, words, iteration)
        if self.optimizer is not None:
            for variable in (head.embeddings, head.bias, *head.score_parameters):
                if variable is not None:
                    reset_optimizer_rows(self.optimizer, variable, moved)

    def _restart_near(self, statistics, senses, words, iteration):
        ends = np.cumsum(statistics.senses_per_word)
        sources = statistics.by_word[ends[words] - 1]  # the most used sense of each word
        rows = ops.convert_to_numpy(ops.take(self.head.embeddings, sources, axis=0))  # [K, d]
        direction = np.random.default_rng([self.seed, iteration]).normal(size=rows.shape)
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        length = np.linalg.norm(rows, axis=-1, keepdims=True)
        self._scatter(self.head.embeddings, senses, rows + _NOISE * length * direction)
        if self.head.bias is not None:
            self._scatter(self.head.bias, senses, ops.take(self.head.bias, sources, axis=0))

    @staticmethod
    def _scatter(variable, rows, values):
        values = ops.convert_to_tensor(values, variable.dtype)
        variable.assign(ops.scatter_update(ops.convert_to_tensor(variable), rows[:, None], values))


def check_reallocation_arguments(interval, policy, momentum, moved_embedding, seed):
    """Raises `ValueError` if an argument of `SenseReallocator` is out of range."""
    if not isinstance(interval, int) or interval < 1:
        raise ValueError(
            f"`interval` must be a positive number of steps. Received: interval={interval!r}"
        )
    if policy is not None and not isinstance(policy, AllocationPolicy):
        raise ValueError(
            "`policy` must be a keras_drill.senses.policies.AllocationPolicy. "
            f"Received: policy={policy!r}"
        )
    if not 0 < momentum <= 1:
        raise ValueError(f"`momentum` must be in (0, 1]. Received: momentum={momentum!r}")
    if moved_embedding not in MOVED_EMBEDDINGS:
        raise ValueError(
            f"`moved_embedding` must be one of {MOVED_EMBEDDINGS}. "
            f"Received: moved_embedding={moved_embedding!r}"
        )
    # The moves must be the same on all replicas, so there is no random seed.
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"`seed` must be a non-negative integer. Received: seed={seed!r}")


def _read(variable) -> np.ndarray:
    """Returns a copy of a variable as an array, summed over replicas if the variable is a sum."""
    return np.array(ops.convert_to_numpy(variable))
