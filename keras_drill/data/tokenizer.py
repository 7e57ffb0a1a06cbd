"""Base class of tokenizers."""

import abc
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from keras_drill.data.checks import shown


class Tokenizer(tf.Module, abc.ABC):
    """Base class for tokenizers, which split text into words and join words to text.

    Words can also be punctuation marks and subword pieces. Subclasses define `tokenize`,
    `detokenize` and `get_config`. `tokenize` and `detokenize` must use TensorFlow operations, so
    that a tokenizer gives the same words in training, in a `tf.function` and in a SavedModel.

    Args:
        name: Name of the `tf.Module`.

    Attributes:
        runs_in_graphs: Whether the tokenizer can run in graphs, such as a `tf.function`. False only
            for a `PreprocessedTokenizer` with a step that runs in Python only.
    """

    @property
    def runs_in_graphs(self) -> bool:
        return True

    @abc.abstractmethod
    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        """Splits text into words.

        Args:
            text: One text or N texts in UTF-8: a string, a list of strings, or a string tensor
                `[]` or `[N]`.

        Returns:
            String tensor `[T]`, the T words of one text. For N texts, a ragged string tensor
            `[N, (T)]`, in which T differs between texts.
        """

    @abc.abstractmethod
    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Joins words to readable text. Spaces may differ from the text before `tokenize`.

        Args:
            words: String tensor `[T]`, the words of one text, or ragged `[N, (T)]`, the words of N
                texts.

        Returns:
            String tensor `[]` for one text, `[N]` for N texts.
        """

    @abc.abstractmethod
    def get_config(self) -> dict:
        """Returns a dictionary of the constructor arguments.

        The class method `from_config` creates an equal tokenizer from this dictionary.
        """

    @classmethod
    def from_config(cls, config: dict) -> "Tokenizer":
        return cls(**config)


class VocabularySizeError(ValueError):
    """Raised by the method `train` of a subword tokenizer if `vocabulary_size` is too small.

    The vocabulary must contain all characters of the text that the tokenizer has to know, see the
    argument `character_coverage` of `train`. Both arguments are attributes of the error.

    Args:
        size: The requested vocabulary size.
        least: The smallest possible vocabulary size for this text.
    """

    def __init__(self, size: int, least: int):
        super().__init__(
            f"`vocabulary_size` must be at least {least} for this text, because each of its "
            "characters must be known. To drop rare characters, lower `character_coverage`. "
            f"Received: vocabulary_size={size}"
        )
        self.size = size
        self.least = least

    def with_reserved(self, number: int) -> "VocabularySizeError":
        """Returns a new error, with `size` and `least` increased by `number`.

        Use this method if the vocabulary also contains `number` reserved words, such as `<pad>`,
        which the training of the tokenizer does not count in `vocabulary_size`.
        """
        return VocabularySizeError(self.size + number, self.least + number)


def as_text(text: Any) -> tf.Tensor:
    """Converts text to a string tensor, from strings, bytes, lists of these, arrays and tensors.

    Example:

    >>> as_text(["one", b"two"]).numpy().tolist()
    [b'one', b'two']
    """
    try:
        return tf.convert_to_tensor(text, tf.string)
    except (TypeError, ValueError, tf.errors.OpError):
        raise ValueError(
            "`text` must be a string, a list of strings, or a tensor of them. "
            f"Received: text={shown(text)}"
        ) from None


def as_words(words: Any) -> tf.Tensor | tf.RaggedTensor:
    """Converts words to a string tensor, dense or ragged. Accepts lists of strings too.

    Example:

    >>> as_words([["one", "two"], ["three"]])
    <tf.RaggedTensor [[b'one', b'two'], [b'three']]>
    """
    try:
        if not isinstance(words, tf.RaggedTensor):
            is_nested = isinstance(words, list | tuple) and isinstance(
                next(iter(words), None), list | tuple
            )
            convert = tf.ragged.constant if is_nested else tf.convert_to_tensor
            words = convert(words, tf.string)
    except (TypeError, ValueError, tf.errors.OpError):
        raise _no_words(words) from None
    if words.dtype != tf.string or words.shape.rank == 0:
        raise _no_words(words)
    return words


def _no_words(words: Any) -> ValueError:
    return ValueError(
        "`words` must be a list of strings, a list of such lists, or a string tensor, dense or "
        f"ragged. Received: words={shown(words)}"
    )


def join_words(words: tf.Tensor | tf.RaggedTensor, spacing: Iterable[tuple[str, str]]) -> tf.Tensor:
    """Joins words with single spaces, then rewrites the spaces around some of them.

    Args:
        words: string tensor `[T]`, `[N, T]` or ragged `[N, (T)]`; empty strings are skipped.
        spacing: regular expressions (RE2) and their replacements, applied in order.

    Returns:
        String tensor `[]` or `[N]`.
    """
    text = tf.strings.reduce_join(as_words(words), axis=-1, separator=" ")
    text = tf.strings.strip(tf.strings.regex_replace(text, " +", " "))
    for pattern, replacement in spacing:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text
