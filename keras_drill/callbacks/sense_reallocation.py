import os
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.compositions import MultiSense
from keras_drill.ops.private_interfaces import all_layers
from keras_drill.senses.policies import AllocationPolicy
from keras_drill.senses.reallocation_history import ReallocationHistory
from keras_drill.senses.sense_reallocator import SenseReallocator, check_reallocation_arguments


class SenseReallocation(keras.callbacks.Callback):
    """Moves little-used senses to words that need more senses, during `fit`.

    A sense is one of several label vectors (output embeddings) of a word, as in
    `keras_drill.KernelizedBayesianSoftmax`. The total number of senses is constant. During
    training, the output layer's fused loss collects statistics: the log-probability of each target
    word, and the usage of each sense, its mean probability. After every `interval` iterations of
    the optimizer, this callback moves senses by `keras_drill.SenseReallocator`. With
    `steps_per_execution=m` the callback runs only after every m-th iteration, so a reallocation may
    be up to m - 1 iterations late. Under `tf.distribute` the callback sums the statistics of all
    replicas.

    At the end of an epoch the callback adds to the logs

    - `sense_moves`: how many senses moved in this epoch,
    - `mean_senses`: the mean number of senses of words that have more than one. (The mean over all
      words never changes.)

    Train with the fused loss, for example by `keras_drill.LanguageModel`. A Keras loss on the
    layer's outputs collects no statistics.

    To resume, restore a checkpoint of the model and the optimizer, whose variables contain all
    state. Training then resumes exactly, also in the middle of an interval. Only `history` is not
    in a checkpoint: `get_state()` returns it as a flat dictionary of arrays
    (`np.savez(file, **state)`), and `set_state` restores it.

    Args:
        interval: Number of training steps between reallocations.
        policy: A `keras_drill.senses.policies.AllocationPolicy`, which chooses the senses to move;
            `None` is `RankingPolicy()`.
        momentum: Weight of the new value in running averages of the statistics, in (0, 1]. Momentum
            in Keras is the weight of the old value.
        moved_embedding: "keep" keeps the embedding of a moved sense. "near" replaces the embedding
            by the embedding of the new word's most used sense, plus a random vector that is a tenth
            as long. "near" also copies the bias of that sense.
        seed: Integer seed of these random vectors.
        head: The output layer whose senses move; `None` finds the only layer of the model with
            several senses per word.
        log_dir: Folder for TensorBoard. After every reallocation, the callback writes the number of
            moves, `mean_senses`, and histograms of the senses per word and of the kernel parameters
            θ of senses. `None` writes nothing.

    Attributes:
        history: A list with one dictionary per reallocation: `iteration`; `tokens`, the number of
            tokens of the interval; `moves`, the number of moved senses; `senses`, `from_words`,
            `to_words`, arrays `[moves]` of the moved senses, their old words and their new words;
            `words_by_senses`, how many words have 0, 1, 2, ... senses afterwards.

    Raises:
        ValueError: An argument is out of range. `fit` raises the error if the model does not have
            exactly one output layer with several senses per word and `head` is `None`, or if the
            senses of the layer may not move (`dynamic_allocation` or `dynamic` is `False`).

    Example:

    >>> backbone = keras.Sequential([keras.layers.Embedding(11, 5)])
    >>> head = keras_drill.KernelizedBayesianSoftmax(11, num_senses=23)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> model.compile("adam")
    >>> policy = keras_drill.senses.policies.ThresholdPolicy(-2.0)
    >>> reallocation = keras_drill.SenseReallocation(interval=3, policy=policy)
    >>> tokens = np.arange(42).reshape(6, 7) % 11
    >>> fitted = model.fit(tokens, tokens, 2, epochs=2, verbose=0, callbacks=[reallocation])
    >>> [record["iteration"] for record in reallocation.history]
    [3, 6]

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274)
    """

    _reallocator: SenseReallocator  # set at the beginning of training

    def __init__(
        self,
        interval: int = 100,
        policy: AllocationPolicy | None = None,
        momentum: float = 0.1,
        moved_embedding: str = "keep",
        seed: int = 0,
        head: Any = None,
        log_dir: str | os.PathLike | None = None,
    ):
        super().__init__()
        check_reallocation_arguments(interval, policy, momentum, moved_embedding, seed)
        self.interval = interval
        self.policy = policy
        self.momentum = momentum
        self.moved_embedding = moved_embedding
        self.seed = seed
        self.head = head
        self.log_dir = log_dir
        self.history = ReallocationHistory()
        self._num_logged = 0  # number of the history's entries that are in an epoch's logs
        self._writer: Any = None  # `tf.summary.SummaryWriter`, set at the first reallocation

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        self._reallocator = SenseReallocator(
            self._find_head(model) if self.head is None else self.head,
            model.optimizer,
            self.interval,
            self.policy,
            self.momentum,
            self.moved_embedding,
            self.seed,
        )
        self._reallocator.history = self.history

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._reallocator.iteration = None  # a checkpoint may be restored here

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._reallocator.iteration is None:
            iterations = self.model.optimizer.iterations
            self._reallocator.iteration = int(ops.convert_to_numpy(iterations))

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        _ = self.model  # on JAX, makes its variables current
        record = self._reallocator.step()
        if record is not None and self.log_dir is not None:
            self._write(record)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        new = self.history[self._num_logged :]
        self._num_logged = len(self.history)
        if logs is not None:
            logs["sense_moves"] = sum(record["moves"] for record in new)
            logs["mean_senses"] = self._mean_senses()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def get_state(self) -> dict[str, np.ndarray]:
        """Returns the history as a flat dictionary of arrays, for `np.savez(file, **state)`."""
        return {**self.history.to_arrays(), "num_logged": np.array(self._num_logged)}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restores the history from the output of `get_state`, or from a file of this output that
        `np.load` opened.
        """
        self.history.assign(state)
        self._num_logged = int(state["num_logged"])

    def _find_head(self, model):
        layers = [getattr(model, "head", None), *all_layers(model)]
        heads = [x for x in layers if isinstance(getattr(x, "composition", None), MultiSense)]
        if len({id(head) for head in heads}) != 1:
            raise ValueError(
                "`head` must be given unless the model has exactly one output layer with several "
                "senses per word, such as keras_drill.KernelizedBayesianSoftmax. "
                f"Received: head=None, and a model with these output layers: {heads}"
            )
        return heads[0]

    def _counts(self):
        allocation = self._reallocator.head.composition.allocation
        sense_to_word = ops.convert_to_numpy(allocation.sense_to_word)
        return np.bincount(sense_to_word, minlength=allocation.vocabulary_size)

    def _mean_senses(self):
        counts = self._counts()
        return float(counts[counts > 1].mean()) if (counts > 1).any() else 1.0

    def _write(self, record):
        import tensorflow as tf  # TensorFlow writes TensorBoard's files, on any backend

        if self._writer is None:
            self._writer = tf.summary.create_file_writer(str(self.log_dir))
        step = record["iteration"]
        with self._writer.as_default():
            tf.summary.scalar("sense_moves", record["moves"], step)
            tf.summary.scalar("mean_senses", self._mean_senses(), step)
            tf.summary.histogram("senses_per_word", self._counts(), step)
            for parameter in self._reallocator.head.score_parameters:
                tf.summary.histogram(parameter.name, ops.convert_to_numpy(parameter), step)
        self._writer.flush()
