"""Searches for the outputs of sources, with prefixes, length limits and constraints.

Shapes: B sources, S tokens of the longest one, P tokens of the longest prefix.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from keras_drill.decoding import Beams, BeamSearch, Constraint, DecodingStep, MinLength, Sampler
from keras_drill.decoding.random_streams import sample_keys
from keras_drill.export.answers import as_beams

_IDS, _NUMBERS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)


class TokenRows(NamedTuple):
    """The tokens of a batch of texts, as input of a model.

    Attributes:
        ids: Integers `[B, S]`, padded.
        lengths: Integers `[B]`, numbers of tokens before truncation.
        words: Strings `[B, S]`, the original words, or `None`.
    """

    ids: Any
    lengths: Any
    words: Any


class TranslationSearch:
    """Decodes the ids of sources to the ids of outputs, by beam search or sampling.

    `Translator` adds the conversion between texts and ids. Pass a `BeamSearch` or a
    `Sampler` to each call.

    Args:
        step: The model's decoding step.
        vocabulary: Vocabulary of the outputs.
        constraints: Constraints on outputs.
        writes_unknown: Whether outputs may contain the unknown token.
        max_source_tokens: Longer sources are truncated to this number of tokens.
        max_tokens: See `Translator`.
        max_ratio: See `Translator`.
        seed: Seed of a sampler.
        num_samples: Number of outputs that a sampler draws for each source.
    """

    def __init__(
        self,
        step: DecodingStep,
        vocabulary: Any,
        constraints: Sequence[Constraint],
        writes_unknown: bool,
        max_source_tokens: int,
        max_tokens: int,
        max_ratio: float | None,
        seed: int,
        num_samples: int,
    ):
        self.step = step
        self.end_id = vocabulary.end_id
        self.start_id = vocabulary.end_id if vocabulary.start_id is None else vocabulary.start_id
        special = {vocabulary.start_id, vocabulary.pad_id}
        if not writes_unknown:
            special.add(vocabulary.unknown_id)
        self.forbidden = tuple(sorted(special - {None, vocabulary.end_id}))
        self.constraints = tuple(constraints)
        self.max_source_tokens = max_source_tokens
        self.max_tokens = max_tokens
        self.max_ratio = max_ratio
        self.seed = seed
        self.num_samples = num_samples
        self._compiled: dict[str, Any] = {}

    def room(self, source: TokenRows, prefix: TokenRows) -> tf.Tensor:
        """Returns the largest number of tokens of each output, `[B]`.

        The number includes the prefix and the end token.
        """
        room = tf.fill(tf.shape(source.lengths), self.max_tokens)
        if self.max_ratio is not None:
            lengths = tf.minimum(source.lengths, self.max_source_tokens)
            by_source = tf.cast(tf.cast(lengths, tf.float32) * self.max_ratio, tf.int32) + 10
            fewest = max(
                (c.length for c in self.constraints if isinstance(c, MinLength)), default=0
            )
            room = tf.minimum(room, tf.maximum(by_source, fewest + 1))
        return tf.maximum(room, prefix.lengths)

    def __call__(
        self, search: Any, source: TokenRows, prefix: TokenRows, rows: Any = None
    ) -> Beams:
        """Runs a search, in graphs or eagerly.

        Args:
            search: A `BeamSearch` or a `Sampler`.
            source: The sources, with end tokens.
            prefix: The prefixes of outputs, without end tokens.
            rows: Integers `[B]`, the numbers of the rows among all texts. A sampler draws different
                random numbers for different rows. `None` is zero for all rows.
        """
        rows = tf.zeros_like(source.lengths) if rows is None else tf.cast(rows, tf.int32)
        room = self.room(source, prefix)
        arguments = (source.ids, prefix.ids, prefix.lengths, room, rows)
        # Do not trace a function inside a graph: it would keep the weights of its trace.
        run = partial(self._run, search) if tf.inside_function() else self._in_graph(search)
        return run(*arguments)

    def _in_graph(self, search):
        """Returns `_run` as a `tf.function` that is traced once."""
        key = f"{type(search)} {search.get_config()}"
        if key not in self._compiled:
            signature = [_IDS, _IDS, _NUMBERS, _NUMBERS, _NUMBERS]
            self._compiled[key] = tf.function(
                partial(self._run, search), input_signature=signature, autograph=False
            )
        return self._compiled[key]

    def _run(self, search, ids, prefix, prefix_lengths, room, rows):
        count = tf.shape(ids)[0]
        start = tf.concat([tf.fill([count, 1], self.start_id), prefix], axis=1)
        width = tf.reduce_max(tf.concat([room, [0]], 0)) + 1  # 1 for the start token
        tokens = tf.pad(start, [[0, 0], [0, width - tf.shape(start)[1]]])
        arguments: dict[str, Any] = {}
        if isinstance(search, Sampler):
            seeds = tf.fill([count], tf.constant(self.seed, tf.uint32))
            keys = tf.stack([seeds, tf.cast(rows, tf.uint32)], axis=1)  # [B, 2]
            arguments["seed"] = sample_keys(keys, self.num_samples)
            tokens, prefix_lengths, ids, room = (
                tf.repeat(x, self.num_samples, axis=0) for x in (tokens, prefix_lengths, ids, room)
            )
        found = search(
            self.step,
            tokens,
            lengths=prefix_lengths + 1,
            inputs={"source": ids},
            max_lengths=room + 1,
            end_token=self.end_id,
            forbidden_tokens=self.forbidden,
            constraints=self.constraints,
            **arguments,
        )
        return as_beams(found, self.num_samples)


def changed(search: BeamSearch, **changes: Any) -> BeamSearch:
    """Copies a search with other arguments."""
    return type(search).from_config({**search.get_config(), **changes})


def check_positions(backbone: Any, max_source_tokens: int, max_tokens: int) -> None:
    """Raises `ValueError` if a model has fewer learned positions than the maximum lengths."""
    if getattr(backbone, "positions", None) != "learned":
        return
    for name, value in {"max_source_tokens": max_source_tokens, "max_tokens": max_tokens}.items():
        if value > backbone.max_length:
            raise ValueError(
                f"`{name}` must be at most {backbone.max_length}, the model's number of learned "
                f"positions (sinusoidal positions have no limit). Received: {name}={value}"
            )
