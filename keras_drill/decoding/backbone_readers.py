"""Readers run a backbone token by token: by its state, by its cache, or from the beginning.

Shapes: B sequences, R rows (several for each sequence in a beam search), T columns (positions), L
columns of the search's buffer of tokens, d hidden features.
"""

import abc
from typing import Any

import numpy as np
from keras import ops

from keras_drill.decoding.decoding_step import read_in_turn
from keras_drill.layers.carried_state import without_carried_state
from keras_drill.types import Tensor


class BackboneReader(abc.ABC):
    """Base class of readers, which run a backbone token by token for a search.

    `LanguageModelStep` creates the reader for its backbone: a `StateReader`, a `CacheReader` or a
    `PrefixReader`. The methods `begin`, `read` and `prefill` have the arguments and results of the
    same methods of `DecodingStep`.

    Shape letters: B sequences, R rows (sequences of a sampler, or beams), L columns (positions) of
    padded prompts, T positions of whole sequences, d features of a hidden state.

    Args:
        backbone: Model without an output layer, which maps tokens to hidden states.
    """

    name: str  # The value of `LanguageModelStep.decodes_by`.

    def __init__(self, backbone: Any):
        self.backbone = backbone

    @property
    def max_length(self) -> int | None:
        """Largest number of tokens of a row that the backbone can read; `None` for no limit."""
        is_learned = getattr(self.backbone, "positions", None) == "learned"
        return self.backbone.max_length if is_learned else None

    @abc.abstractmethod
    def begin(self, inputs: Any, batch_size: int, length: int) -> tuple[Any, Any]:
        """Returns `(constants, state)` before the first column, as `DecodingStep.begin` does."""

    @abc.abstractmethod
    def read(self, tokens: Tensor, constants: Any, state: Any) -> tuple[Any, Any]:
        """Reads `tokens` `[R]`, the next token of every row.

        Returns `(hidden, state)`: the hidden states `[R, d]` and the new state.
        """

    def prefill(self, tokens: Tensor, count: Tensor, constants: Any, state: Any) -> Any:
        """Returns the state after the first `count` columns of the prompts `tokens` `[B, L]`."""
        return read_in_turn(self.read, tokens, count, constants, state)

    def read_whole(self, tokens: Any) -> Any:
        """Returns hidden states `[B, T, d]` of B whole sequences of T tokens, `[B, T]`.

        The sequences are read from their beginning. The carried state of stateful layers is neither
        used nor changed.
        """
        with without_carried_state(self.backbone):
            return self.backbone(tokens, training=False)

    def _refuse(self, inputs):
        if inputs is not None:
            raise ValueError(
                "`inputs` must be None for a language model, which has no source. "
                f"Received: inputs={inputs}"
            )


class StateReader(BackboneReader):
    """Runs a recurrent backbone token by token, and carries its state from token to token.

    `LanguageModelStep` uses this class for backbones with the method `initial_state`.

    Args:
        backbone: A backbone with the method `initial_state(batch_size)`, which returns the state, a
            list of tensors. A call of the backbone with tokens `[B, T]` (B sequences of T tokens),
            `initial_state=state` and `return_state=True` returns hidden states `[B, T, d]` of width
            d and the new state.
    """

    name = "state"

    def begin(self, inputs: Any, batch_size: int, length: int) -> tuple[Any, Any]:
        self._refuse(inputs)
        return (), self.backbone.initial_state(batch_size)

    def read(self, tokens: Tensor, constants: Any, state: Any) -> tuple[Any, Any]:
        hidden, state = self._run(tokens[:, None], state)
        return hidden[:, 0], state

    def prefill(self, tokens: Tensor, count: Tensor, constants: Any, state: Any) -> Any:
        if not isinstance(count, int):
            # The width of a slice must be known under XLA, the length of a scan need not be.
            return super().prefill(tokens, count, constants, state)
        return self._run(tokens[:, :count], state)[1] if count else state

    def read_whole(self, tokens: Tensor) -> Any:
        return self._run(tokens, self.backbone.initial_state(ops.shape(tokens)[0]))[0]

    def _run(self, tokens, state):
        return self.backbone(tokens, initial_state=state, return_state=True, training=False)


class CacheReader(BackboneReader):
    """Runs a backbone token by token for a search, with the backbone's cache of earlier tokens.

    `LanguageModelStep` uses this class for backbones with the method `begin_decoding`. The backbone
    needs two methods:

    - `begin_decoding(inputs, batch_size, length)` returns `(constants, cache)`, as
      `DecodingStep.begin` does. Constants are for example an encoded source. The cache has keys and
      values for `length` positions (Transformer), or a state (recurrent network).
    - `read_column(tokens, constants, cache)` reads the next token of every row, `[R]`. It returns
      `(hidden, cache)`: hidden states `[R, d]`, and the new cache.

    Backbones with attention to a source may also have the methods `read_column_with_attention` and
    `source_mask`, with the arguments and results of `DecodingStep.read_with_attention` and
    `DecodingStep.source_mask`.

    Shape letters: R rows of the search (sequences or beams), d features of a hidden state.

    Args:
        backbone: A backbone with these methods.
    """

    name = "cache"

    def begin(self, inputs: Any, batch_size: int, length: int) -> Any:
        return self.backbone.begin_decoding(inputs, batch_size, length)

    def read(self, tokens: Tensor, constants: Any, state: Any) -> Any:
        return self.backbone.read_column(tokens, constants, state)


class PrefixReader(BackboneReader):
    """Runs any causal backbone, which reads the whole sequence again for each new token.

    `LanguageModelStep` uses this class for backbones without a state or a cache. The reader stores
    the tokens of each sequence, padded with zeros to the maximum length. The backbone also reads
    this padding, which does not affect the earlier hidden states of a causal backbone.

    Args:
        backbone: A backbone that maps tokens `[B, T]` (B sequences of T tokens), or a dictionary of
            `token_ids` and `padding_mask` as in keras-hub, to hidden states `[B, T, d]` of width d.

    Raises:
        ValueError: The backbone is not causal: its outputs depend on later words.
    """

    name = "prefix"

    def __init__(self, backbone: Any):
        super().__init__(backbone)
        specifications = getattr(backbone, "input_spec", None)
        if not isinstance(specifications, list):
            specifications = [specifications]
        shape = getattr(specifications[0], "shape", None) or (None, None)
        self._fixed_length = shape[1]  # for a functional model with Input((length,))
        names = {getattr(specification, "name", None) for specification in specifications}
        self._takes_mask = names == {"token_ids", "padding_mask"}
        self._check_causality()

    @property
    def max_length(self) -> int | None:
        # Backbones of keras-hub with learned positions have `max_sequence_length`.
        return self._fixed_length or getattr(self.backbone, "max_sequence_length", None)

    def begin(self, inputs: Any, batch_size: int, length: int) -> tuple[Any, Any]:
        self._refuse(inputs)
        zeros = ops.zeros((batch_size, length), dtype="int32")
        return (), (zeros, zeros[:, 0])

    def read(self, tokens: Tensor, constants: Any, state: Any) -> tuple[Any, Any]:
        written, position = state
        columns = ops.arange(ops.shape(written)[1], dtype="int32")
        here = columns == position[:, None]  # [R, L]
        written = ops.where(here, tokens[:, None], written)
        hidden = self.read_whole(written)  # [R, L, d]
        hidden = ops.sum(ops.where(here[:, :, None], hidden, 0), axis=1)
        return hidden, (written, position + 1)

    def prefill(self, tokens: Tensor, count: Tensor, constants: Any, state: Any) -> tuple[Any, Any]:
        _, position = state
        position = position + count
        columns = ops.arange(ops.shape(tokens)[1], dtype="int32")
        return ops.where(columns < position[:, None], tokens, 0), position

    def read_whole(self, tokens: Tensor) -> Any:
        if self._takes_mask:
            mask = ops.ones_like(tokens, dtype="int32")
            return super().read_whole({"token_ids": tokens, "padding_mask": mask})
        if self._fixed_length is None:
            return super().read_whole(tokens)
        batch_size, length = ops.shape(tokens)
        if isinstance(length, int) and length > self._fixed_length:
            raise ValueError(
                f"`max_length` must be at most {self._fixed_length}, the length of sequences that "
                f"the backbone takes. Received: sequences of length {length}"
            )
        rest = ops.zeros((batch_size, self._fixed_length - length), dtype="int32")
        tokens = ops.concatenate([ops.cast(tokens, "int32"), rest], axis=1)
        return super().read_whole(tokens)[:, :length]

    def _check_causality(self):
        """Raises `ValueError` if the first hidden state depends on the second word."""
        hidden = self.read_whole(ops.convert_to_tensor([[1, 0], [1, 1]], dtype="int32"))
        first, second = ops.convert_to_numpy(hidden)
        if not np.allclose(first[0], second[0], rtol=1e-3, atol=1e-5):
            raise ValueError(
                "`model` must have a causal backbone to generate: its hidden state at a word must "
                "not depend on the words after it. Use causal attention masks, and no "
                "bidirectional layers. Received: a backbone whose first hidden state changes with "
                "the second word"
            )


def make_reader(backbone) -> BackboneReader:
    """Returns the fastest reader for a backbone, depending on the backbone's methods."""
    if hasattr(backbone, "begin_decoding"):
        return CacheReader(backbone)
    if hasattr(backbone, "initial_state"):
        return StateReader(backbone)
    return PrefixReader(backbone)
