from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import keras
from keras import ops

from keras_drill.fused_loss.word_statistics import num_better
from keras_drill.metrics.perplexity import targets_and_predictions
from keras_drill.metrics.token_mean import TokenMean
from keras_drill.types import Tensor

# Ranks of the targets whose log-probabilities a `LanguageModel` passes to its metrics.
_ranks = ContextVar("ranks", default=None)


@keras.saving.register_keras_serializable(package="keras_drill")
class TokenAccuracy(TokenMean):
    """Share of tokens whose target is the most probable word, or one of the `top_k`.

    A `LanguageModel` never stores the log-probabilities of all words. Its loss counts the words
    that are more probable than each target, which costs one comparison per logit. A plain Keras
    model must predict the log-probabilities of all V words, `[..., V]`, where `[...]` is the shape
    of the targets. Among equally probable words, the word with the lowest id ranks first, as in an
    argmax. The share is weighted by sample weights. Masked tokens of a `LanguageModel` are ignored.
    In a plain Keras model, give padding the weight 0, as described for `Perplexity`.

    Args:
        top_k: A token counts as correct if its target is among this number of most probable words.
        name: Name of the metric; `None` is "accuracy" for `top_k=1`, "top_5_accuracy" for
            `top_k=5`, and so on.
        dtype: Dtype of the sums over tokens; `None` is `keras.config.floatx()`.

    Raises:
        ValueError: `top_k` is not a positive integer.

    Example:

    >>> import keras_drill
    >>> import numpy as np
    >>> metric = keras_drill.metrics.TokenAccuracy()
    >>> metric.update_state([[2, 1]], np.log([[[0.2, 0.3, 0.5], [0.5, 0.4, 0.1]]]))
    >>> float(metric.result())
    0.5
    """

    def __init__(self, top_k: int = 1, name: str | None = None, dtype: Any = None):
        if not isinstance(top_k, int) or top_k < 1:
            raise ValueError(f"`top_k` must be a positive integer. Received: top_k={top_k!r}")
        if name is None:
            name = "accuracy" if top_k == 1 else f"top_{top_k}_accuracy"
        super().__init__(name=name, dtype=dtype)
        self.top_k = top_k
        self._direction = "up"  # Keras' callbacks read this attribute

    def update_state(  # type: ignore[override]  # Keras passes targets and predictions
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds the tokens of a batch to the share of correct tokens.

        Args:
            y_true: Ids of the target words, integers `[...]` or `[..., 1]`.
            y_pred: Log-probabilities of all words `[..., V]`. Only a `LanguageModel` may pass the
                log-probabilities of the targets `[...]`, because its loss has counted the words
                that are more probable than each target.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape, such as one
                weight per sequence. `None` weights all tokens equally. Tokens of weight 0 may have
                any target.

        Raises:
            ValueError: `y_pred` has only the log-probabilities of the targets, and the caller is
                not a `LanguageModel`.
        """
        y_true, y_pred = targets_and_predictions(y_true, y_pred)
        if len(y_pred.shape) == len(y_true.shape) + 1:
            ranks = _ranks_among_all(y_true, y_pred)
        elif _ranks.get() is not None:
            ranks = ops.reshape(_ranks.get(), ops.shape(y_true))
        else:
            raise ValueError(
                "`y_pred` must be log-probabilities of all words, [..., V], because those of the "
                "targets do not show which words are more probable. Let the output layer return "
                "all log-probabilities, or use a keras_drill.LanguageModel, which passes the "
                "targets' ranks. "
                f"Received: y_pred of shape {tuple(y_pred.shape)}"
            )
        super().update_state(ranks < self.top_k, sample_weight)

    def get_config(self) -> dict:
        return {**super().get_config(), "top_k": self.top_k}


@contextmanager
def given_ranks(ranks) -> Iterator[None]:
    """Passes the targets' ranks, or `None`, to `TokenAccuracy` metrics inside the `with` block."""
    token = _ranks.set(ranks)
    try:
        yield
    finally:
        _ranks.reset(token)


def _ranks_among_all(targets, log_probs):
    """Returns the targets' ranks: how many words are more probable.

    Args:
        targets: `[...]` integers.
        log_probs: `[..., V]`.

    Returns:
        `[...]`, from 0. The rank is V for a target outside the vocabulary or with a log-probability
        of NaN.
    """
    num_words = log_probs.shape[-1]
    here = ops.cast(ops.reshape(targets, (-1,)), "int32")
    log_probs = ops.reshape(log_probs, (-1, num_words))
    inside = ops.clip(here, 0, num_words - 1)
    found = ops.take_along_axis(log_probs, inside[:, None], axis=-1)
    is_word = ops.logical_and(here == inside, ~ops.isnan(found[:, 0]))
    ranks = ops.cast(num_better(log_probs, found, here), "int32")
    return ops.reshape(ops.where(is_word, ranks, num_words), ops.shape(targets))
