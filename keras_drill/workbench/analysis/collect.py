"""Collects hidden states and log-probabilities of a model for all tokens of a dataset."""

from collections.abc import Iterable

import keras
import numpy as np

from keras_drill.layers.carried_state import zero_state


def collect_hidden(
    model: keras.Model, dataset: Iterable, words: Iterable[int] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Collects the hidden states from which a `LanguageModel` predicts the targets of a dataset.

    A stateful backbone starts from a zero state and carries its state from batch to batch.
    Afterwards its previous state is restored.

    Args:
        model: A `keras_drill.LanguageModel`.
        dataset: `tf.data.Dataset`, or anything that iterates over `(tokens, targets)` or
            `(tokens, targets, sample_weight)`, each `[B, T]`.
        words: Ids of the target words to keep; `None` keeps all.

    Returns:
        `(places, targets, hidden)`: int64 and int32 arrays `[N]` and a float32 array `[N, d_h]`,
        batch after batch, row after row. Tokens of weight 0 are dropped. `places` are the positions
        of the kept tokens among all tokens that are not dropped: 0, 1, 2 ... with `words=None`.
    """
    chosen = None if words is None else np.fromiter(words, "int64")
    # XLA would compile once per sequence length; JAX has no other compiler.
    reader = _Reader(model.backbone)
    reader.compile(jit_compile=keras.backend.backend() == "jax")
    seen, places, targets, hidden = 0, [], [], []
    with zero_state(model.backbone):
        for batch in dataset:
            tokens, batch_targets, *weight = keras.tree.map_structure(np.asarray, tuple(batch))
            states = np.asarray(reader.predict_on_batch(tokens))
            kept = weight[0] != 0 if weight else np.ones(batch_targets.shape, "bool")
            batch_targets, states = batch_targets[kept], states[kept]
            batch_places = np.arange(seen, seen + len(batch_targets))
            seen += len(batch_targets)
            if chosen is not None:
                kept = np.isin(batch_targets, chosen)
                batch_places, batch_targets = batch_places[kept], batch_targets[kept]
                states = states[kept]
            places.append(batch_places)
            targets.append(batch_targets)
            hidden.append(states)
    if not targets:
        raise ValueError(f"`dataset` must have at least one batch. Received: {dataset}")
    return (
        np.concatenate(places),
        np.concatenate(targets).astype("int32"),
        np.concatenate(hidden).astype("float32"),
    )


class _Reader(keras.Model):
    """Wraps a backbone, which may be any layer, as a model that Keras can compile."""

    def __init__(self, backbone):
        super().__init__(name="reader")
        self.backbone = backbone

    def call(self, tokens, training=None):
        return self.backbone(tokens, training=training)


def collect_log_probs(model: keras.Model, dataset: Iterable) -> tuple[np.ndarray, np.ndarray]:
    """Computes the log-probability of every target of a dataset under a `LanguageModel`.

    The matrix `[tokens, vocabulary]` of all log-probabilities is never in memory. A stateful
    backbone starts from a zero state and carries its state from batch to batch. Afterwards its
    previous state is restored.

    Args:
        model: A `keras_drill.LanguageModel`.
        dataset: `tf.data.Dataset`, or anything that iterates over `(tokens, targets)` or
            `(tokens, targets, sample_weight)`, each `[B, T]`.

    Returns:
        `(targets, log_probs)`: int32 and float32 arrays `[N]`, batch after batch, row after row.
        Tokens of weight 0 are dropped.
    """
    # XLA would compile once per sequence length; JAX has no other compiler.
    scorer = _TargetLogProb(model.backbone, model.head)
    scorer.compile(jit_compile=keras.backend.backend() == "jax")
    targets, log_probs = [], []
    with zero_state(model.backbone):
        for batch in dataset:
            tokens, batch_targets, *weight = keras.tree.map_structure(np.asarray, tuple(batch))
            scores = scorer.predict_on_batch((tokens, batch_targets))
            kept = weight[0] != 0 if weight else np.ones(batch_targets.shape, "bool")
            targets.append(batch_targets[kept])
            log_probs.append(scores[kept])
    if not targets:
        raise ValueError(f"`dataset` must have at least one batch. Received: {dataset}")
    return np.concatenate(targets).astype("int32"), np.concatenate(log_probs).astype("float32")


def in_text_order(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Sorts values of targets from the order of the batches to the order of the text.

    Args:
        values: `[N, ...]`, batch after batch, such as a result of `collect_log_probs`.
        places: Position in the text of each target, integers `[N]`.

    Example:

    >>> in_text_order(np.array([0.1, 0.3, 0.2]), np.array([0, 2, 1])).tolist()
    [0.1, 0.2, 0.3]
    """
    ordered = np.empty_like(values)
    ordered[places] = values
    return ordered


class _TargetLogProb(keras.Model):
    """Keras model that maps `(tokens, targets)` to the log-probabilities of the targets."""

    def __init__(self, backbone, head):
        super().__init__(name="target_log_probs")
        self.backbone = backbone
        self.head = head

    def call(self, inputs, training=None):
        tokens, targets = inputs
        return self.head.log_prob(self.backbone(tokens, training=training), targets)
