"""Streams words while they are generated."""

from collections.abc import Generator
from typing import Any

import numpy as np
from keras import ops

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.search import Search
from keras_drill.types import Tensor


def stream(
    search: Search, step: DecodingStep, tokens: Tensor, lengths: Tensor, **arguments: Any
) -> Generator[list[list[int]], None, Any]:
    """Runs a search, and yields new words after each step.

    A sampler yields at most one word per sequence and step. A beam search yields words as soon as
    all beams of a sequence agree on them, and at the end the remaining words of the best beam.

    The loop runs eagerly. The words are the same as in the result of a call of the search. To pass
    new words to a function instead, use `generate(..., on_tokens=...)`.

    Args:
        search: A sampler or a beam search.
        step: The model's `DecodingStep`, such as `LanguageModelStep(model)`.
        tokens: Integer tensor `[B, L]`: prompts, padded to L, the maximum length of a prompt and
            its new words together.
        lengths: Lengths `[B]` of the prompts, integers from 1 to L.
        **arguments: The other arguments of `Search.begin`, for a sampler also `seed`.

    Yields:
        A list with one list for each of the B sequences: the ids of its new words, often none,
        including the end token.

    Returns:
        The result of the search, which is the value of the expression `yield from stream(...)`.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.decoding import stream
    >>> backbone = keras_drill.models.AWDLSTM(11, embedding_dim=4, units=5, num_layers=1)
    >>> model = keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(11))
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> step = keras_drill.decoding.LanguageModelStep(model)
    >>> sampler = keras_drill.decoding.TopKSampler(5)
    >>> [len(words) for [words] in stream(sampler, step, [[3, 7, 0, 0, 0]], [2], seed=1)]
    [1, 1, 1]
    """
    loop, walk = search.begin(step, tokens, lengths, **arguments)
    told = [int(length) for length in ops.convert_to_numpy(lengths)]
    while loop.should_continue(*walk):
        walk = loop.advance(*walk)
        rows, _, memory = walk
        yield _news(rows.tokens, rows.lengths, search.may_win(rows, memory), told)
    rows, _, memory = walk
    result = search.result(rows, memory)
    best_tokens, best_lengths = result.tokens, result.lengths
    if len(best_tokens.shape) == 3:  # the best of several
        best_tokens, best_lengths = best_tokens[:, 0], best_lengths[:, 0]
    rest = _news(best_tokens, best_lengths, ops.ones_like(best_lengths, "bool"), told)
    if any(rest):
        yield rest
    return result


def _news(tokens, lengths, may_win, told):
    """Returns new words, on which all beams of a sequence that may become results agree.

    `told` is a list with the number of words of each of the B sequences that were yielded before.
    The function updates this list.
    """
    tokens, lengths, may_win = (ops.convert_to_numpy(x) for x in (tokens, lengths, may_win))
    per_sequence = len(tokens) // max(len(told), 1)
    news = []
    for sequence, count in enumerate(told):
        own = np.arange(sequence * per_sequence, (sequence + 1) * per_sequence)
        own = own[may_win[own]]
        shortest = lengths[own].min(initial=tokens.shape[1])
        agree = (tokens[own, :shortest] == tokens[own[:1], :shortest]).all(axis=0)
        certain = int(agree.argmin()) if not agree.all() else int(shortest)
        news.append(tokens[own[0], count:certain].tolist())
        told[sequence] = max(count, certain)
    return news
