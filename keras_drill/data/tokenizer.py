"""What every tokenizer offers."""

import abc
from collections.abc import Iterable

import tensorflow as tf


class Tokenizer(tf.Module, abc.ABC):
    """Splits text into words with graph operations, and puts words together again.

    A tokenizer holds no Python state that its operations depend on after they are traced: inside
    a `tf.function` or a SavedModel it gives the very words that it gave in training.

    Attributes:
        runs_in_graphs: Whether that is so. What `PreprocessedTokenizer` puts in front of a
            tokenizer may run in Python only.
    """

    @property
    def runs_in_graphs(self) -> bool:
        return True

    @abc.abstractmethod
    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        """Splits text into words.

        Args:
            text: string tensor, `[]` or `[N]`, UTF-8.

        Returns:
            String tensor `[T]` for one text, ragged `[N, (T)]` for many.
        """

    @abc.abstractmethod
    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Joins words to text that reads well; not an exact inverse of `tokenize`.

        Args:
            words: string tensor `[T]`, `[N, T]` or ragged `[N, (T)]`; empty strings are left out.

        Returns:
            String tensor `[]` or `[N]`.
        """

    @abc.abstractmethod
    def get_config(self) -> dict:
        """What makes an equal tokenizer: `type(self).from_config(config)`."""

    @classmethod
    def from_config(cls, config: dict) -> "Tokenizer":
        return cls(**config)


def join_words(words: tf.Tensor | tf.RaggedTensor, spacing: Iterable[tuple[str, str]]) -> tf.Tensor:
    """Joins words with single spaces, then rewrites the spaces around some of them.

    Args:
        words: string tensor `[T]`, `[N, T]` or ragged `[N, (T)]`; empty strings are left out.
        spacing: patterns, which RE2 reads, and their replacements, applied in order.

    Returns:
        String tensor `[]` or `[N]`.
    """
    text = tf.strings.reduce_join(words, axis=-1, separator=" ")
    text = tf.strings.strip(tf.strings.regex_replace(text, " +", " "))
    for pattern, replacement in spacing:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text
