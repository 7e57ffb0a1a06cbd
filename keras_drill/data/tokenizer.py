"""What every tokenizer offers."""

import abc

import tensorflow as tf


class Tokenizer(tf.Module, abc.ABC):
    """Splits text into words with graph operations, and puts words together again.

    A tokenizer holds no Python state that its operations depend on after they are traced: inside
    a `tf.function` or a SavedModel it gives the very words that it gave in training.
    """

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
        """The arguments that make an equal tokenizer: `type(self)(**config)`."""
