"""The base class of samplers."""

import abc
from typing import Any, NamedTuple

from keras import ops

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.random_streams import counter_uniform, row_keys
from keras_drill.decoding.rows import Rows
from keras_drill.decoding.search import Loop, Search
from keras_drill.types import Tensor


class Generation(NamedTuple):
    """Result of a sampler: B generated sequences, padded to the maximum length L.

    Attributes:
        tokens: Integer tensor `[B, L]`: prompt, then generated tokens (including the end token),
            then padding.
        lengths: Integer tensor `[B]`: number of tokens with the prompt, without padding.
        log_probs: Float32 tensor `[B, L]`: log-probability of each generated token by the model,
            before the sampler and constraints change the probabilities; 0 for prompt and padding.
    """

    tokens: Any
    lengths: Any
    log_probs: Any


class Sampler(Search):
    """Base class for samplers, which choose the next word of each sequence independently.

    Subclasses choose the next word in `choose`. A subclass whose `choose` needs no random numbers
    sets the class attribute `is_random` to False. Pass a sampler to `keras_drill.decoding.generate`
    as `sampler`, or call it with the arguments of `Search.__call__`.

    Example, a sampler that always chooses the second best word:

    >>> import keras
    >>> from keras_drill.decoding import Sampler
    >>> class SecondBest(Sampler):
    ...     is_random = False
    ...     def choose(self, log_probs, uniforms):
    ...         return keras.ops.top_k(log_probs, 2)[1][:, 1]
    """

    is_random = True  # Whether `choose` uses its random numbers.

    @abc.abstractmethod
    def choose(self, log_probs: Tensor, uniforms: Tensor) -> Tensor:
        """Chooses one word per row.

        Args:
            log_probs: Float32 tensor `[B, V]`, log-probabilities of V words for B sequences (rows);
                negative infinity for forbidden words.
            uniforms: Float32 tensor `[B]`, one random number in [0, 1) per row, from a uniform
                distribution. All are 0 if the class attribute `is_random` is false.

        Returns:
            The chosen words, an integer tensor `[B]`.
        """

    def get_config(self) -> dict:
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Sampler":
        return cls(**config)

    def begin(
        self,
        step: DecodingStep,
        tokens: Tensor,
        lengths: Tensor,
        *,
        seed: Any = None,
        **arguments: Any,
    ) -> tuple[Loop, tuple[Rows, Any, Any]]:
        """Begins a search as `Search.begin` does, and draws the random numbers of all steps.

        `Search.__call__` calls this method and passes `seed`. The random numbers of a row depend
        only on the row's key, a pair of integers.

        Args:
            step: The model's `DecodingStep`.
            tokens: Integer tensor `[B, L]`: prompts, padded to the maximum length.
            lengths: Lengths `[B]` of the prompts.
            seed: An integer from 0 to 2**32 - 1 makes calls reproducible, and row b of the batch
                has the key `(seed, b)`. An integer tensor `[B]` gives row b the key `(seed[b], 0)`,
                so that the row does not depend on its place in the batch. An integer tensor
                `[B, 2]` contains the keys. With `None`, each call draws a seed from Keras' global
                generator.
            **arguments: The other arguments of `Search.begin`.

        Returns:
            The output of `Search.begin`. The search's own state is the random numbers `[B, L]`.
        """
        loop, (rows, state, _) = super().begin(step, tokens, lengths, **arguments)
        uniforms = ops.zeros_like(rows.log_probs)  # [B, L]
        if self.is_random:
            batch_size, width = ops.shape(rows.tokens)
            uniforms = counter_uniform(row_keys(seed, batch_size), width)
        return loop, (rows, state, uniforms)

    def extend(self, log_probs: Tensor, rows: Rows, memory: Any) -> tuple[Any, Any, Any]:
        return None, self.choose(log_probs, ops.take(memory, rows.index, axis=1)), memory

    def result(self, rows: Rows, memory: Any) -> Generation:
        return Generation(rows.tokens, rows.lengths, rows.log_probs)
