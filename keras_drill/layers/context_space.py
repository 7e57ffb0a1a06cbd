from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class ContextSpace(keras.layers.Layer):
    """Centres an encoder's states, projects them on principal axes, and scales them to one norm.

        context = length · x / |x|,    x = (state − mean) A

    Put this layer between a trained encoder and an output layer that learns several embeddings
    (senses) of each word from the results (contexts). Call `adapt` with states before you use the
    layer. The columns of A are the `dim` principal axes of these states. With `whiten`, each axis
    is divided by the standard deviation along the axis.

    With `num_words`, the mean of all states of the same word is subtracted. Use `num_words` for
    states that depend on the word itself: only the differences between the word's occurrences
    remain.

    The norm `length` is fixed because the output layer's scores grow with the norm of the contexts.
    A trainable norm would grow without bound, and each sense would then fit only a few contexts.

    Shape letters: N states of width D, contexts of width d, V words.

    Args:
        dim: Number of principal axes d; at most D.
        whiten: Whether to scale the axes to equal variance.
        length: Euclidean norm of each context.
        num_words: Number of words V whose means are subtracted; `None` subtracts the mean of all
            states.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Raises:
        ValueError: An argument is out of range. `adapt` raises this error if there are not more
            than `dim` states, if `dim` is greater than D, or if only one of `num_words` and the
            argument `words` is given.

    Example:

    >>> states = np.random.default_rng(0).normal(size=(50, 7)) * np.arange(1, 8)
    >>> space = keras_drill.layers.ContextSpace(3, length=5.0)
    >>> space.adapt(states)
    >>> contexts = space(states)
    >>> tuple(contexts.shape), float(np.linalg.norm(contexts[0]).round(3))
    ((50, 3), 5.0)
    """

    def __init__(
        self,
        dim: int = 128,
        whiten: bool = False,
        length: float = 8.0,
        num_words: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, value in {"dim": dim, "length": length, "num_words": num_words}.items():
            if value is not None and not value > 0:
                raise ValueError(f"`{name}` must be positive. Received: {name}={value!r}")
        self.dim = dim
        self.whiten = whiten
        self.length = length
        self.num_words = num_words

    def build(self, input_shape: Shape) -> None:
        width = input_shape[-1]
        if width is None or self.dim > width:
            raise ValueError(
                f"`dim` must be at most the width of the states, {width}. Received: dim={self.dim}"
            )
        self.mean = self._state("mean", self.num_words or 1, width)
        self.axes = self._state("axes", width, self.dim)

    def _state(self, name: str, *shape: int):
        return self.add_weight(
            name=name, shape=shape, initializer="zeros", trainable=False, autocast=False
        )

    def adapt(self, states: np.ndarray, words: np.ndarray | None = None) -> None:
        """Computes the mean and the axes from states.

        Args:
            states: Floats `[N, D]`, with N greater than `dim`.
            words: Integers `[N]` in [0, V), the word of each state, if the layer has `num_words`,
                else `None`. Words that do not occur get the mean of all states.
        """
        states = np.asarray(states, "float64")
        if states.ndim != 2 or len(states) <= self.dim:
            raise ValueError(
                "`states` must have shape [N, D], N states of width D, with N > `dim`, which is "
                f"{self.dim}. "
                f"Received: states of shape {states.shape}"
            )
        if not self.built:
            self.build(states.shape)
        mean = states.mean(axis=0, keepdims=True)
        words = self._check_words(words, len(states))
        if self.num_words is not None:
            mean = np.repeat(mean, self.num_words, axis=0)
            for word in np.unique(words):
                mean[word] = states[words == word].mean(axis=0)
        centred = states - mean[words]
        variance, axes = np.linalg.eigh(centred.T @ centred / len(states))
        variance, axes = variance[::-1][: self.dim], axes[:, ::-1][:, : self.dim]
        if self.whiten:
            axes = axes / np.sqrt(np.maximum(variance, 1e-12 * variance[0]))
        self.mean.assign(mean)
        self.axes.assign(axes)

    def _check_words(self, words: np.ndarray | None, number: int) -> np.ndarray:
        if (words is None) != (self.num_words is None):
            expected = (
                "None, because the layer has no `num_words`"
                if self.num_words is None
                else f"word ids from 0 to `num_words` - 1 = {self.num_words - 1}"
            )
            raise ValueError(f"`words` must be {expected}. Received: words={words!r}")
        return np.zeros(number, int) if words is None else np.asarray(words)

    def call(self, states: Tensor, words: Tensor | None = None) -> Tensor:
        """Computes contexts `[N, d]` of states `[N, D]`.

        The words, integers `[N]` in [0, V), are the words of the states. They are required if the
        layer has `num_words`, and else ignored.
        """
        # In float32: the differences of large states are small, and are then scaled up.
        mean = self.mean if self.num_words is None else ops.take(self.mean, words, axis=0)
        x = ops.matmul(ops.cast(states, self.mean.dtype) - mean, self.axes)
        squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
        contexts = self.length * x * ops.rsqrt(ops.maximum(squares, 1e-12))
        return ops.cast(contexts, self.compute_dtype)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "dim": self.dim,
            "whiten": self.whiten,
            "length": self.length,
            "num_words": self.num_words,
        }
