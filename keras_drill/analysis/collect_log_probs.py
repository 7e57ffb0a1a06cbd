"""Log-probabilities of the targets of a dataset, token by token."""

from collections.abc import Iterable

import keras
import numpy as np

from keras_drill.analysis.zero_state import zero_state


def collect_log_probs(model, dataset: Iterable) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability that a `LanguageModel` gives to every target of a dataset.

    The `[tokens, vocabulary]` matrix is never made. A stateful backbone starts from a zero state,
    carries it from batch to batch, and gets back the state that it had before.

    Args:
        model: A `keras_drill.LanguageModel`.
        dataset: `tf.data.Dataset`, or anything that iterates over `(tokens, targets)` or
            `(tokens, targets, sample_weight)`, each `[B, T]`.

    Returns:
        `(targets, log_probs)`: int32 and float32 arrays `[N]`, batch after batch, row after row,
        without the tokens whose weight is 0.
    """
    # XLA would compile once per sequence length; JAX has no other compiler.
    scorer = _TargetLogProb(model.backbone, model.head)
    scorer.compile(jit_compile=keras.backend.backend() == "jax")
    targets, log_probs = [], []
    with zero_state(model.backbone):
        for batch in dataset:
            tokens, batch_targets, *weight = (np.asarray(part) for part in batch)
            scores = scorer.predict_on_batch((tokens, batch_targets))
            kept = weight[0] != 0 if weight else np.ones(batch_targets.shape, "bool")
            targets.append(batch_targets[kept])
            log_probs.append(scores[kept])
    if not targets:
        raise ValueError(f"`dataset` must have at least one batch. Received: {dataset}")
    return np.concatenate(targets).astype("int32"), np.concatenate(log_probs).astype("float32")


class _TargetLogProb(keras.Model):
    """Backbone and head as a model of `(tokens, targets)`, for Keras to compile."""

    def __init__(self, backbone, head):
        super().__init__(name="target_log_probs")
        self.backbone = backbone
        self.head = head

    def call(self, inputs, training=None):
        tokens, targets = inputs
        return self.head.log_prob(self.backbone(tokens, training=training), targets)
