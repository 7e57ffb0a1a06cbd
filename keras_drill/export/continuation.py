"""Continues texts up to the end token, a number of words, or a stop string.

Shapes: B texts, T words of the longest one, N words of the longest continuation, L = 1 + T + N.
"""

import re

import tensorflow as tf

from keras_drill.data.truncate import truncate
from keras_drill.decoding import LanguageModelStep, Rows
from keras_drill.export.text_codec import TextCodec


class StopStrings:
    """Finds the first of several strings in texts, in graphs.

    Args:
        strings: The strings; an empty tuple never stops.

    Example:

    >>> stops = StopStrings(("dog", "."))
    >>> texts = tf.constant(["a cat. a dog", "a cat"])
    >>> stops.occur_in(texts).numpy().tolist(), stops.cut(texts).numpy().tolist()
    ([True, False], [b'a cat', b'a cat'])
    """

    def __init__(self, strings: tuple[str, ...] = ()):
        if isinstance(strings, str) or not all(
            isinstance(string, str) and string for string in strings
        ):
            raise ValueError(
                "`stop_strings` must be a tuple of strings, none of them empty. "
                f"Received: stop_strings={strings!r}"
            )
        self.strings = tuple(strings)
        self._pattern = "(?s)(?:" + "|".join(re.escape(string) for string in strings) + ").*"

    def __bool__(self) -> bool:
        return bool(self.strings)

    def occur_in(self, texts):
        """Returns whether each text contains one of the strings: booleans, shaped like `texts`."""
        if not self:
            return tf.zeros(tf.shape(texts), tf.bool)
        return tf.strings.regex_full_match(texts, "(?s).*" + self._pattern)

    def cut(self, texts):
        """Cuts each text before the first of the strings."""
        return tf.strings.regex_replace(texts, self._pattern, "") if self else texts


class Continuation:
    """Continues prompts, for the signatures of `TextModel`.

    Args:
        step: The model's decoding step.
        codec: The model's `TextCodec`.
        max_new_tokens: Largest number of words to add to a prompt.
        forbidden_tokens: Ids never to generate.
        stop_strings: Strings at which a continuation ends.
    """

    def __init__(
        self,
        step: LanguageModelStep,
        codec: TextCodec,
        max_new_tokens: int,
        forbidden_tokens: tuple[int, ...],
        stop_strings: StopStrings,
    ):
        self.step = step
        self.codec = codec
        self.max_new_tokens = max_new_tokens
        self.forbidden_tokens = forbidden_tokens
        self.stop_strings = stop_strings

    def __call__(self, prompts, max_new_tokens, sampler, seed) -> dict:
        """Continues prompts. Returns the dictionary of `TextModel.continue_text`.

        Args:
            prompts: String tensor `[B]`.
            max_new_tokens: Integer tensor `[B]`.
            sampler: Sampler that chooses the words.
            seed: See `Sampler.begin`.
        """
        prompt_words = self.codec.words_of_prompts(prompts)  # [B, (T)]
        read = last_words(prompt_words, self.step, self.max_new_tokens)
        tokens = self.codec.with_start(self.codec.vocabulary.ids(read))  # [B, 1 + T]
        prompt_lengths = tf.cast(read.row_lengths(), tf.int32) + 1
        tokens = tf.pad(tokens, [[0, 0], [0, self.max_new_tokens]])  # [B, L]
        result = sampler(
            self.step,
            tokens,
            prompt_lengths,
            max_lengths=prompt_lengths + max_new_tokens,
            end_token=self.codec.vocabulary.end_id,
            forbidden_tokens=self.forbidden_tokens,
            ends=self._has_stop_string if self.stop_strings else None,
            seed=seed,
        )
        is_new = _is_new(result.tokens, result.lengths, prompt_lengths)
        words = self.codec.vocabulary.words(
            tf.ragged.boolean_mask(result.tokens, is_new)
        )  # [B, (N)]
        log_probs = tf.ragged.boolean_mask(result.log_probs, is_new)
        readable = self.codec.readable(words)
        texts = self.codec.join(tf.concat([prompt_words, readable], axis=1))
        continuations = self.codec.join(readable)
        if self.stop_strings:
            whole = tf.strings.length(continuations)
            continuations = self.stop_strings.cut(continuations)
            length = tf.strings.length(texts) - whole + tf.strings.length(continuations)
            texts = tf.strings.substr(texts, tf.zeros_like(length), length)
        return {
            "texts": texts,
            "continuations": continuations,
            "words": words.to_tensor(""),
            "log_probs": log_probs.to_tensor(0.0),
            "lengths": result.lengths - prompt_lengths,
        }

    def _has_stop_string(self, rows: Rows):
        is_new = _is_new(rows.tokens, rows.lengths, rows.prompt_lengths)
        words = self.codec.vocabulary.words(tf.ragged.boolean_mask(rows.tokens, is_new))
        return self.stop_strings.occur_in(self.codec.join(self.codec.readable(words)))


def last_words(words, step: LanguageModelStep, room: int):
    """Returns the last words `[B, (T)]` of prompts that, with `room` new words, fit the model."""
    if step.max_length is None:
        return words
    return truncate(words, step.max_length - room - 1, "left")  # 1 for the start token


def _is_new(tokens, lengths, prompt_lengths):
    """Returns a mask `[B, L]` of the tokens that are neither prompt nor padding."""
    columns = tf.range(tf.shape(tokens)[1])  # [L]
    return (columns >= prompt_lengths[:, None]) & (columns < lengths[:, None])
