"""The loop that all samplers share."""

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.counter_uniform import counter_uniform
from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.generation import Generation


class Sampler:
    """Base class of the samplers: owns the loop, leaves the choice of a word to `choose`.

    Each step of the loop feeds one column to the model and writes the next one. A row whose prompt
    reaches further keeps the prompt's token, so prompts of different lengths share a batch and
    every row's state has read exactly that row's tokens. The loop stops when all rows have ended.

    Works eagerly, in `tf.function`, under XLA and in `jax.jit`.

    Example, a sampler that always takes the second best word:

    >>> class SecondBest(Sampler):
    ...     def choose(self, log_probs, uniforms):
    ...         return keras.ops.top_k(log_probs, 2)[1][:, 1]
    """

    is_random = True  # Whether `choose` uses its random numbers.

    def choose(self, log_probs, uniforms):
        """Chooses one word per row.

        Args:
            log_probs: Float32 tensor `[B, V]`, negative infinity for forbidden words.
            uniforms: Float32 tensor `[B]`, random numbers in [0, 1), one per row; all 0 unless
                `is_random`.

        Returns:
            Integer tensor `[B]`.
        """
        raise NotImplementedError

    def get_config(self) -> dict:
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "Sampler":
        return cls(**config)

    def __call__(
        self,
        step: DecodingStep,
        tokens,
        lengths,
        *,
        max_lengths=None,
        end_token: int | None = None,
        forbidden_tokens=(),
        pad_token: int = 0,
        seed=None,
    ) -> Generation:
        """Continues every row of a buffer until the end token or the end of the row.

        Args:
            step: The model's `DecodingStep`.
            tokens: Integer tensor `[B, L]`: prompts, followed by room for what is generated.
            lengths: Lengths `[B]` of the prompts, from 1 to L. As NumPy array or list, the part
                that all prompts have is read in parallel; as tensor, it is read by a scan, whose
                length may depend on the data under XLA too.
            max_lengths: Integer tensor `[B]`, where each row ends if it does not reach the end
                token before. Defaults to L.
            end_token: The token that ends a sequence, or None.
            forbidden_tokens: Tokens never to generate.
            pad_token: Fills the buffer after a sequence's end.
            seed: An integer from 0 to 2**32 - 1 makes every call draw the same; row b then draws
                from stream `(seed, b)`. An integer tensor `[B]` gives each row its own stream
                `(seed[b], 0)`, whatever else is in the batch. None takes a fresh seed from Keras'
                global generator at each call.

        Returns:
            A `Generation`.
        """
        tokens = ops.convert_to_tensor(tokens, dtype="int32")
        batch_size, width = ops.shape(tokens)
        prompt_lengths = ops.convert_to_tensor(lengths, dtype="int32")
        max_lengths = ops.convert_to_tensor(
            width if max_lengths is None else max_lengths, dtype="int32"
        )
        columns = ops.arange(width, dtype="int32")[None, :]  # [1, L]
        tokens = ops.where(columns < prompt_lengths[:, None], tokens, pad_token)
        uniforms = ops.zeros_like(tokens, dtype="float32")  # [B, L]
        if self.is_random:
            uniforms = counter_uniform(_row_keys(seed, batch_size), width)
        forbidden = _forbidden_mask(forbidden_tokens, step.vocabulary_size)  # [V]

        if ops.is_tensor(lengths):
            # An empty batch has no shortest prompt: the bound keeps the scan short.
            start = ops.minimum(ops.min(prompt_lengths, initial=width), width)
        else:
            start = int(np.min(lengths, initial=width))
        state = step.prefill(tokens, start - 1)

        def unfinished(index, tokens, log_probs, lengths, finished, state):
            return ops.logical_and(index < width, ops.any(ops.logical_not(finished)))

        def advance(index, tokens, log_probs, lengths, finished, state):
            scores, state = step(ops.take(tokens, index - 1, axis=1), state)  # [B, V]
            chosen = ops.cast(
                self.choose(
                    ops.where(forbidden, -np.inf, scores), ops.take(uniforms, index, axis=1)
                ),
                "int32",
            )  # [B]
            log_prob = ops.take_along_axis(scores, chosen[:, None], axis=-1)  # [B, 1]
            active = ops.logical_and(index >= prompt_lengths, ops.logical_not(finished))
            # A column is replaced by selection: stock operations only, on every backend.
            written = ops.logical_and(columns == index, active[:, None])  # [B, L]
            tokens = ops.where(written, chosen[:, None], tokens)
            log_probs = ops.where(written, log_prob, log_probs)
            lengths = lengths + ops.cast(active, "int32")
            ended = lengths >= max_lengths
            if end_token is not None:
                ended = ops.logical_or(ended, chosen == end_token)
            finished = ops.logical_or(finished, ops.logical_and(active, ended))
            return index + 1, tokens, log_probs, lengths, finished, state

        _, tokens, log_probs, lengths, _, _ = ops.while_loop(
            unfinished,
            advance,
            (
                ops.convert_to_tensor(start, dtype="int32"),
                tokens,
                ops.zeros_like(tokens, dtype="float32"),
                prompt_lengths,
                prompt_lengths >= max_lengths,
                state,
            ),
        )
        return Generation(tokens, lengths, log_probs)


def _row_keys(seed, batch_size):
    """The uint32 key `[B, 2]` of every row's random stream."""
    if seed is None:
        seed = keras.random.randint((), 0, 2**31 - 1)
    if isinstance(seed, (int, np.integer)) and not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be from 0 to 2**32 - 1. Received: seed={seed}")
    rows = ops.cast(ops.arange(batch_size, dtype="int32"), "uint32")
    if isinstance(seed, (int, np.integer)):
        seed = ops.convert_to_tensor(np.uint32(seed))
    seed = ops.cast(seed, "uint32")
    if len(seed.shape) == 0:
        return ops.stack([ops.broadcast_to(seed, (batch_size,)), rows], axis=-1)
    return ops.stack([seed, ops.zeros_like(seed)], axis=-1)


def _forbidden_mask(forbidden_tokens, vocabulary_size):
    mask = np.zeros(vocabulary_size, dtype=bool)
    for token in forbidden_tokens:
        if not 0 <= token < vocabulary_size:
            raise ValueError(
                f"`forbidden_tokens` must be from 0 to {vocabulary_size - 1}. "
                f"Received: forbidden_tokens={forbidden_tokens}"
            )
        mask[token] = True
    if mask.all():
        raise ValueError("`forbidden_tokens` must leave at least one token. Received: all of them")
    return mask
