"""Text generation in one call."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.beam_search import Beams
from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.greedy_sampler import GreedySampler
from keras_drill.decoding.language_model_step import LanguageModelStep
from keras_drill.decoding.random_streams import row_keys, sample_keys
from keras_drill.decoding.rows import Rows
from keras_drill.decoding.sampler import Generation, Sampler
from keras_drill.decoding.search import Search
from keras_drill.decoding.stream import stream
from keras_drill.types import Tensor


def generate(
    model: keras.Model,
    prompts: Tensor,
    max_length: int,
    *,
    sampler: Search | None = None,
    lengths: Tensor | None = None,
    start_token: int | None = None,
    end_token: int | None = None,
    forbidden_tokens: Any = (),
    constraints: Sequence[Callable[[Any, Rows], Any]] = (),
    pad_token: int = 0,
    seed: Any = None,
    inputs: Any = None,
    num_samples: int = 1,
    on_tokens: Callable[[list[list[int]]], Any] | None = None,
) -> Generation | Beams:
    """Continues prompts with a language model, by a sampler or a beam search.

    The backbone (the model without its output layer) must be causal: its outputs do not depend on
    later words. The cost of a generated token depends on whether the backbone has a state, a cache
    or neither, see `LanguageModelStep`. An eager call runs the loop over tokens eagerly
    (TensorFlow) or compiles the loop each time (JAX). To generate many texts, call a sampler inside
    `tf.function` or `jax.jit`, or use `keras_drill.export.TextModel`, which calls a sampler inside
    `tf.function`.

    Args:
        model: A built `keras_drill.LanguageModel`, a `keras.Model` whose input is token ids and
            whose last layer is a `keras_drill.OutputLayer`, or a `DecodingStep`. For repeated calls
            create `LanguageModelStep(model)` once and pass it, since its creation computes the
            labels (output embeddings) of all words.
        prompts: A list of lists of token ids, a ragged tensor, or an integer array `[B, T]` of B
            prompts that are padded to T tokens. For strings use `keras_drill.export.TextModel`. If
            a prompt of several tokens ends with the end token, as the lines of an `EncodedText` do,
            the continuation begins after this token, and the function warns.
        max_length: Maximum length of a sequence in tokens, with the prompt and the start token.
        sampler: A `Sampler`, or another `Search` such as `BeamSearch`. Defaults to
            `GreedySampler()`.
        lengths: Lengths `[B]` of the prompts without padding, if `prompts` is a padded array. With
            `None`, every token of `prompts` is part of a prompt.
        start_token: Token that is added before every prompt; required if a prompt may be empty.
            For models trained on continuous text, use the end token, which precedes each line.
        end_token: The token that ends a sequence. With `None`, sequences end at the maximum length.
        forbidden_tokens: Tokens never to generate, for example `[vocabulary.unknown_id]`.
        constraints: `Constraint`s, such as `[RepetitionPenalty(1.2), NoRepeatNGrams(3)]`.
        pad_token: Padding of the result after a sequence's end.
        seed: An integer that makes calls reproducible; samplers only. See `Sampler.begin` for one
            seed per row.
        inputs: Further inputs of the model, for example the source; see `DecodingStep.begin`.
        num_samples: Number of independent continuations of each prompt; samplers only. With the
            same `seed`, a larger number adds continuations to those of a smaller number. For a
            `BeamSearch` use `num_results`.
        on_tokens: Function that is called after each step. Its argument is a list with one list for
            each sequence: the new tokens of the sequence, often none. Tokens of the prompt are not
            included. With `on_tokens`, the loop runs eagerly. To iterate over new tokens use
            `stream`.

    Returns:
        With a beam search, `Beams`. With a sampler, a `Generation`: tokens `[N, max_length]`,
        lengths `[N]`, log-probabilities `[N, max_length]`, where N is the number of prompts times
        `num_samples`. The samples of a prompt are adjacent.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.decoding import generate
    >>> backbone = keras_drill.models.AWDLSTM(11, embedding_dim=4, units=5, num_layers=1)
    >>> head = keras_drill.OutputLayer(11, embedding=backbone.embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> sampler = keras_drill.decoding.TopKSampler(5)
    >>> result = generate(model, [[1, 2, 3], [4]], 7, sampler=sampler, seed=0)
    >>> result.tokens.shape[1]
    7
    """
    step = model if isinstance(model, DecodingStep) else LanguageModelStep(model)
    search = GreedySampler() if sampler is None else sampler
    longest = getattr(step, "max_length", None)
    if longest is not None and max_length > longest:
        raise ValueError(
            f"`max_length` must be at most {longest}, the length of sequences that the backbone "
            f"takes. Received: max_length={max_length}"
        )
    prompts = _rows(prompts, lengths, start_token)
    _warn_of_ended(prompts, end_token)
    tokens = _buffer(prompts, max_length, step.vocabulary_size, pad_token)
    lengths = np.array([len(prompt) for prompt in prompts], dtype="int32")
    draws = isinstance(search, Sampler)
    if not draws and (num_samples > 1 or seed is not None):
        raise ValueError(
            "`seed` and `num_samples` must be omitted if `sampler` is not a "
            "keras_drill.decoding.Sampler: beam search has no random choices. "
            f"Received: sampler={search!r}, seed={seed!r}, num_samples={num_samples}"
        )
    if num_samples < 1:
        raise ValueError(f"`num_samples` must be positive. Received: num_samples={num_samples}")
    if num_samples > 1:
        seed = sample_keys(row_keys(seed, len(prompts)), num_samples)
        tokens, lengths = np.repeat(tokens, num_samples, 0), np.repeat(lengths, num_samples)
        inputs = _repeated(inputs, num_samples)
    run = search if on_tokens is None else partial(_search_and_report, on_tokens, search)
    return run(
        step,
        tokens,
        lengths,
        end_token=end_token,
        forbidden_tokens=forbidden_tokens,
        constraints=constraints,
        pad_token=pad_token,
        inputs=inputs,
        **({"seed": seed} if draws else {}),
    )


def _repeated(inputs, times):
    """Repeats each row of `inputs` `times` times. Lists without arrays are converted to arrays."""
    if inputs is None:
        return None
    if isinstance(inputs, dict):
        return {name: _repeated(one, times) for name, one in inputs.items()}
    if isinstance(inputs, list | tuple) and any(hasattr(one, "shape") for one in inputs):
        return [_repeated(one, times) for one in inputs]
    return ops.repeat(ops.convert_to_tensor(inputs), times, axis=0)


def _search_and_report(on_tokens, search, step, tokens, lengths, **arguments):
    """Runs the search, passes new words to `on_tokens`, and returns the result."""
    words = stream(search, step, tokens, lengths, **arguments)
    while True:
        try:
            news = next(words)
        except StopIteration as end:
            return end.value
        on_tokens(news)


def _buffer(prompts, max_length, vocabulary_size, pad_token):
    """Writes the prompts to rows `[B, max_length]`."""
    tokens = np.full((len(prompts), max_length), pad_token, dtype="int32")
    longest = max(map(len, prompts), default=1)
    for row, prompt in enumerate(prompts):
        if not len(prompt):
            raise ValueError(
                "`prompts` must not be empty unless `start_token` is given. "
                f"Received: an empty prompt at row {row}"
            )
        if longest > max_length:
            raise ValueError(
                f"`max_length` must be at least {longest}, the number of tokens of the longest "
                "prompt (with the start token, if `start_token` is given). "
                f"Received: max_length={max_length}"
            )
        if prompt.min() < 0 or prompt.max() >= vocabulary_size:
            raise ValueError(
                f"`prompts` must hold token ids from 0 to {vocabulary_size - 1}. "
                f"Received: {prompt.tolist()} at row {row}"
            )
        tokens[row, : len(prompt)] = prompt
    return tokens


def _warn_of_ended(prompts, end_token):
    """Warns about prompts with an end token, after which most models generate nothing useful."""
    # A single end token is a prompt for the start of a line.
    ended = [
        row for row, prompt in enumerate(prompts) if len(prompt) > 1 and prompt[-1] == end_token
    ]
    if ended:
        warnings.warn(
            f"{len(ended)} of {len(prompts)} `prompts` end with the end token, and are continued "
            "after it as a new line. To continue the text, drop the end token: `ids[:-1]`. "
            f"Received: {prompts[ended[0]].tolist()} at row {ended[0]}, end_token={end_token}",
            stacklevel=3,
        )


def _rows(prompts, lengths, start_token):
    """Converts the prompts to a list of NumPy vectors."""
    if hasattr(prompts, "to_list"):  # a ragged tensor
        prompts = prompts.to_list()
    if isinstance(prompts, str | bytes):
        raise _wrong_prompts(prompts)
    start = [] if start_token is None else [start_token]
    lengths = [None] * len(prompts) if lengths is None else lengths
    if len(lengths) != len(prompts):
        raise ValueError(
            f"`lengths` must have one number per prompt ({len(prompts)}). "
            f"Received: {len(lengths)} numbers"
        )
    rows = []
    for prompt, length in zip(prompts, lengths, strict=True):
        ids = prompt if isinstance(prompt, str | bytes) else ops.convert_to_numpy(prompt)
        if (
            not isinstance(ids, np.ndarray)
            or ids.ndim != 1
            or (len(ids) and ids.dtype.kind not in "iu")
        ):
            raise _wrong_prompts(prompt)
        if length is not None and length > len(ids):
            raise ValueError(
                f"`lengths` must be at most the width of `prompts` ({len(ids)}). Received: {length}"
            )
        rows.append(np.concatenate([start, ids[:length]]).astype("int32"))
    return rows


def _wrong_prompts(prompt):
    return ValueError(
        "`prompts` must be rows of token ids, such as [[4, 7], [5]]. Texts are continued by "
        "`keras_drill.export.TextModel(model, tokenizer, vocabulary).continue_text(texts)`; their "
        "ids are `vocabulary.ids(tokenizer.tokenize(texts))`. "
        f"Received: {prompt!r}"
    )
