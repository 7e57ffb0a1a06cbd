"""Vocabulary: maps words to ids."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_drill.data.atomic import replace_file
from keras_drill.data.batches import check_at_least_one
from keras_drill.data.checks import check_is, check_texts, shown
from keras_drill.data.lines import Lines, as_lines
from keras_drill.data.prefetch import prefetch
from keras_drill.data.text_lines import TextLines
from keras_drill.data.tokenizer import Tokenizer, as_words
from keras_drill.data.word_numbers import WordNumbers

# Small enough that the words stay in the processor's cache.
_LINES_AT_A_TIME = 1024


class Vocabulary(tf.Module):
    """A list of distinct words. The id of a word is its position in the list.

    The methods `ids` and `words` can be traced into a SavedModel, which then contains the
    vocabulary. Words that are not in the list get the id of the unknown token.

    Args:
        tokens: The words in the order of their ids, including special tokens.
        counts: How often each word occurs in the training text, in the order of `tokens`. `None` if
            the counts are not known.
        unknown_token: Token for words that are not in the list; must be in the list.
        end_token: Token at the end of each line; must be in the list.
        start_token: Token before a sequence that a model reads without earlier text, such as the
            target of a translation. May be missing from the list.
        pad_token: Padding token of batches; may be missing from the list.

    Attributes:
        unknown_id, end_id: Ids of these tokens.
        start_id, pad_id: Ids of these tokens, `None` if they are not in the list.

    Example:

    >>> import tensorflow as tf
    >>> from keras_drill.data import Vocabulary
    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat"])
    >>> vocabulary.ids(tf.constant(["the", "dog", "<eos>"])).numpy()
    array([2, 0, 1], dtype=int32)
    >>> vocabulary.words(tf.constant([2, 3])).numpy().tolist()
    [b'the', b'cat']
    """

    def __init__(
        self,
        tokens: Sequence[str],
        counts: Sequence[int] | None = None,
        unknown_token: str = "<unk>",
        end_token: str = "<eos>",
        start_token: str = "<sos>",
        pad_token: str = "<pad>",
    ):
        super().__init__(name="vocabulary")
        check_texts("tokens", tokens)
        self.tokens = tuple(tokens)
        self.counts = None if counts is None else _checked_counts(counts)
        self.unknown_token = unknown_token
        self.end_token = end_token
        self.start_token = start_token
        self.pad_token = pad_token
        self._check()
        places = {token: place for place, token in enumerate(self.tokens)}
        self.unknown_id = places[unknown_token]
        self.end_id = places[end_token]
        self.start_id = places.get(start_token)
        self.pad_id = places.get(pad_token)
        with tf.init_scope(), tf.device("CPU"):  # string tensors must be on the CPU
            self._words = tf.constant(self.tokens, tf.string)
            self._table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    self._words, tf.range(len(self.tokens), dtype=tf.int32)
                ),
                default_value=self.unknown_id,
            )

    @classmethod
    def build(
        cls,
        lines: Lines | Iterable[str | bytes],
        tokenizer: Tokenizer,
        max_size: int | None = None,
        min_count: int = 1,
        special_tokens: Sequence[str] = ("<unk>", "<eos>"),
        numbers: WordNumbers | None = None,
        **token_names: str,
    ) -> "Vocabulary":
        """Builds a vocabulary of the most frequent words of a text, with their counts.

        The special tokens come first, in the given order. Then come the words by decreasing count.
        Words of equal count are in the order of their UTF-8 bytes, so that the order of lines does
        not matter. Words that are not kept add to the count of the unknown token. A special token
        that the text already contains, such as `<unk>`, is not added a second time. The count of
        the end token includes one for each line.

        Args:
            lines: The training text, such as `TextLines(path)`, or a list of strings.
            tokenizer: `Tokenizer` that splits the lines into words.
            max_size: Largest number of tokens, including special tokens; `None` for no limit.
            min_count: Words that occur fewer times than this are not kept.
            special_tokens: Tokens that are always in the vocabulary. They should include the
                unknown token and the end token, which a vocabulary must contain.
            numbers: A new `keras_drill.data.word_numbers.WordNumbers`, which counts the words. With
                `WordNumbers(keep_in=folder)`, its method `encoded(vocabulary)` can later yield the
                ids of the text, without tokenizing the text again. `None` only counts the words.
            **token_names: `unknown_token`, `end_token`, `start_token` and `pad_token`, if they
                differ from the defaults of `Vocabulary`.

        Returns:
            A `Vocabulary`.
        """
        lines = as_lines(lines)
        check_is("tokenizer", tokenizer, Tokenizer, "a `Tokenizer`, such as `WordTokenizer()`")
        check_texts("special_tokens", special_tokens)
        check_at_least_one(max_size=max_size, min_count=min_count)
        if max_size is not None and max_size <= len(special_tokens):
            raise ValueError(
                f"`max_size` must be greater than the {len(special_tokens)} special tokens. "
                f"Received: max_size={max_size}"
            )
        numbers = WordNumbers() if numbers is None else numbers
        for words in prefetch(map(tokenizer.tokenize, lines.tensors(_LINES_AT_A_TIME))):
            numbers.add(words)
        if not len(numbers.counts):
            raise ValueError(f"The text holds no words, only white space. Received: {lines.origin}")
        counter = dict(zip(numbers.words, numbers.counts.tolist(), strict=True))
        special = [token.encode() for token in special_tokens]
        ranked = sorted(sorted(counter), key=counter.__getitem__, reverse=True)
        kept = [word for word in ranked if counter[word] >= min_count and word not in special]
        if max_size is not None:
            kept = kept[: max_size - len(special)]
        counts = [counter.get(word, 0) for word in special + kept]
        left_out = sum(counter.values()) - sum(counts)
        vocabulary = cls([word.decode() for word in special + kept], counts, **token_names)
        counts[vocabulary.end_id] += numbers.num_lines
        counts[vocabulary.unknown_id] += left_out
        vocabulary.counts = tuple(counts)
        return vocabulary

    @classmethod
    def load(cls, path: str | os.PathLike, **token_names: str) -> "Vocabulary":
        """Reads a vocabulary from a file with one word per line.

        The id of a word is its line number, from 0. Counts are read from the file
        `counts_path(path)` if this file exists.

        Args:
            path: Path of the file.
            **token_names: `unknown_token`, `end_token`, `start_token` and `pad_token`, if they
                differ from the defaults of `Vocabulary`.
        """
        tokens = [line.decode() for line in TextLines(path)]
        counts = None
        if cls.counts_path(path).exists():
            counts = _read_counts(cls.counts_path(path))
        try:
            return cls(tokens, counts, **token_names)
        except ValueError as error:
            raise ValueError(f"Cannot use the vocabulary file {str(path)!r}: {error}") from None

    @staticmethod
    def counts_path(path: str | os.PathLike) -> Path:
        """Returns the path of the file of counts that belongs to a vocabulary file.

        The extension becomes `.counts`: the path for `vocabulary.txt` is `vocabulary.counts`.

        Args:
            path: Path of the vocabulary file.
        """
        return Path(path).with_suffix(".counts")

    def save(self, path: str | os.PathLike) -> None:
        """Writes the words to `path`, one per line, and the counts to `counts_path(path)`.

        Without counts, an existing file of counts is removed. Each file is written atomically.
        """
        # In this order, a killed process cannot leave the counts of other words beside the words.
        self.counts_path(path).unlink(missing_ok=True)
        replace_file(path, "".join(f"{token}\n" for token in self.tokens))
        if self.counts is not None:
            replace_file(self.counts_path(path), "".join(f"{count}\n" for count in self.counts))

    def ids(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Maps words to int32 ids of the same shape.

        Words may be a dense or ragged string tensor, or a list. Words that are not in the
        vocabulary get the id of the unknown token.
        """
        if isinstance(words, str | bytes):
            words = tf.constant(words)
        return self._table.lookup(words if tf.is_tensor(words) else as_words(words))

    def words(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Maps ids to words, strings of the same shape.

        Ids may be a dense or ragged integer tensor, or a list. The ids must be at least 0, and less
        than the number of words.
        """
        try:
            return tf.gather(self._words, ids)
        except (TypeError, ValueError, tf.errors.InvalidArgumentError):
            raise ValueError(
                f"`ids` must be integers from 0 to {len(self) - 1}, in a tensor, an array or a "
                f"list. Received: ids={shown(ids)}"
            ) from None

    def get_config(self) -> dict:
        return {
            "tokens": list(self.tokens),
            "counts": None if self.counts is None else list(self.counts),
            "unknown_token": self.unknown_token,
            "end_token": self.end_token,
            "start_token": self.start_token,
            "pad_token": self.pad_token,
        }

    def __len__(self) -> int:
        return len(self.tokens)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("tokens", "counts"):  # tf.Module would search the words for variables
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def _check(self) -> None:
        _check_distinct(self.tokens)
        for name in ("unknown_token", "end_token"):
            if getattr(self, name) not in self.tokens:
                raise ValueError(
                    f"`tokens` must contain the `{name}`, {getattr(self, name)!r}: add this token, "
                    f"or pass another `{name}`. Received: {len(self.tokens)} tokens, beginning "
                    f"with {list(self.tokens[:5])}"
                )
        if self.counts is not None and len(self.counts) != len(self.tokens):
            raise ValueError(
                f"`counts` must have one count for each of the {len(self.tokens)} tokens. "
                f"Received: {len(self.counts)} counts"
            )


def _checked_counts(counts: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(map(int, counts))
    except (TypeError, ValueError):
        raise ValueError(
            f"`counts` must be whole numbers. Received: counts={shown(counts)}"
        ) from None


def _read_counts(path: Path) -> list[int]:
    counts = []
    for number, line in enumerate(TextLines(path), start=1):
        if not line.strip().isdigit():
            raise ValueError(
                f"The file of word counts must have one whole number per line; line {number} is "
                f"{line.decode()!r}. To use no counts, delete the file. Received: {str(path)!r}"
            )
        counts.append(int(line))
    return counts


def _check_distinct(tokens: Sequence[str]) -> None:
    for token in tokens:
        check_is("tokens", token, str, "strings")
    encoded = [token.encode() for token in tokens]
    if encoded and b" ".join(encoded).split() == encoded and len(set(encoded)) == len(encoded):
        return
    seen: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if token.encode().split() != [token.encode()]:  # the white space of tf.strings.split
            raise ValueError(
                "`tokens` must be non-empty strings without white space. "
                f"Received: tokens[{place}]={token!r}"
            )
        if token in seen:
            raise ValueError(
                "`tokens` must be distinct. "
                f"Received: tokens[{seen[token]}] and tokens[{place}], both {token!r}"
            )
        seen[token] = place
    if not seen:
        raise ValueError("`tokens` must not be empty. Received: no tokens")
