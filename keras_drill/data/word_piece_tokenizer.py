"""WordPiece tokenizer."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from keras_drill.data.atomic import replace_file
from keras_drill.data.checks import check_symbols, check_texts, is_whole
from keras_drill.data.text_lines import TextLines
from keras_drill.data.tokenizer import Tokenizer, VocabularySizeError, as_text, join_words

_UNKNOWN = "<unk>"
_SUFFIX = "##"
_MAX_WORD_BYTES = 1000  # longer words are unknown
_INVISIBLE = r"[\x{FFFD}\p{Cf}]"
_SPACE = r"[\pZ\p{Cc}]"
# Characters that BERT splits off as words: ASCII symbols, Unicode punctuation, CJK ideographs.
_SINGLE = (
    r"[!-/:-@\[-`{-~\pP]"
    r"|[\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{20000}-\x{2A6DF}]"
    r"|[\x{2A700}-\x{2CEAF}\x{2F800}-\x{2FA1F}]"
)
_SPACING = (
    (r"(^| )##", ""),
    (r" ([.,;:!?%)\]}…]+)", r"\1"),
    (r"([(\[{$]) ", r"\1"),
    (r" ([-/_]) ", r"\1"),
    (r"(\pL) (['’]) (\pL)", r"\1\2\3"),
    (r"(\d[.,]) (\d)", r"\1\2"),
    (r'" ([^"]*) "', r'"\1"'),
    ("„ ([^“]*) “", r"„\1“"),
    ("“ ([^”]*) ”", r"“\1”"),
)


@keras.saving.register_keras_serializable(package="keras_drill")
class WordPieceTokenizer(Tokenizer):
    """Tokenizer that splits text into words as BERT does, and words into subword pieces.

    Text is split at white space, and around every punctuation mark and CJK ideograph. Invisible
    characters (Unicode category Cf) are dropped. A word is split into the longest known pieces,
    from left to right. A piece that does not begin a word has the prefix `##`. A word that cannot
    be split into known pieces becomes `<unk>` as a whole. The tokenizer runs in graphs, and needs
    tensorflow-text.

    `detokenize` joins the pieces to the same words, but must guess the spaces around punctuation
    and ideographs. `detokenize` writes no space before `. , ; : ! ? % ) ] }`, after `( [ { $`,
    around `- / _`, around an apostrophe between letters, after an opening quote, before a closing
    quote, or inside numbers such as `1,000.5`. `SentencePieceTokenizer` restores spaces exactly.

    Case and accents are kept. To change the text first, for example by `Lowercase()`, use a
    `PreprocessedTokenizer`.

    Args:
        pieces: The pieces, in any order. `<unk>` is not required. The pieces of BERT may contain
            special tokens such as `[UNK]` and `[CLS]`, which `tokenize` never returns unless they
            are also in `symbols`.
        symbols: Words that are never split, for example `__eou__`. Symbols that are not in `pieces`
            are added to the pieces.

    Attributes:
        fingerprint: Hexadecimal digest (SHA-256) of pieces and symbols, to recognise the tokenizer.

    Raises:
        ValueError: A piece or a symbol is empty, contains white space, or occurs twice in its list.
            Or there is no piece other than `<unk>`.

    Example:

    >>> from keras_drill.data import WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer(["the", "un", "##happy", "##est", "!", "cat"])
    >>> pieces = tokenizer.tokenize("the unhappyest cat, the dog!")
    >>> [piece.decode() for piece in pieces.numpy()]
    ['the', 'un', '##happy', '##est', 'cat', '<unk>', 'the', '<unk>', '!']
    >>> tokenizer.detokenize(["the", "un", "##happy", "cat", "!"]).numpy()
    b'the unhappy cat!'

    References:
        - [Schuster & Nakajima, 2012](https://research.google/pubs/japanese-and-korean-voice-search)
        - [Devlin et al., 2019](https://arxiv.org/abs/1810.04805) (splitting into words)
    """

    def __init__(self, pieces: Sequence[str], symbols: Sequence[str] = ()):
        super().__init__(name="word_piece_tokenizer")
        check_texts("pieces", pieces)
        check_texts("symbols", symbols)
        self.symbols = tuple(symbols)  # tuples, since tf.Module would wrap lists
        self._pieces = tuple(dict.fromkeys([*_checked(pieces), *_checked(symbols)]))
        if not set(self._pieces) - {_UNKNOWN}:
            raise ValueError(
                f"`pieces` must contain at least one piece other than {_UNKNOWN!r}. "
                f"Received: pieces={pieces!r}"
            )
        self._split = _split_pattern(self.symbols)
        self._tokenizer = tf_text.FastWordpieceTokenizer(
            list(dict.fromkeys([_UNKNOWN, *self._pieces])),
            suffix_indicator=_SUFFIX,
            max_bytes_per_word=_MAX_WORD_BYTES,
            token_out_type=tf.string,
            unknown_token=_UNKNOWN,
            no_pretokenization=True,
        )
        content = "\n".join([*self._pieces, "", *self.symbols])
        self.fingerprint = hashlib.sha256(content.encode()).hexdigest()

    @classmethod
    def train(
        cls,
        lines: Iterable[str | bytes],
        vocabulary_size: int,
        symbols: Sequence[str] = (),
        character_coverage: float = 1.0,
        max_words: int = 50_000,
    ) -> "WordPieceTokenizer":
        """Trains a tokenizer: learns pieces, which are frequent substrings of words, from text.

        Training takes about half a minute for 20,000 different words.

        Args:
            lines: The text: strings without line breaks, such as `TextLines(path)` or a list.
            vocabulary_size: Number of pieces, including symbols, without `<unk>`. A small text may
                give fewer pieces.
            symbols: Words that are never split, as in the constructor.
            character_coverage: Least share of the text's characters that the tokenizer knows, in
                (0, 1]. The most frequent characters are known. Each of them is a piece, and also a
                piece with the prefix `##` unless text is always split around it. A word with an
                unknown character becomes `<unk>`.
            max_words: Largest number of different words to learn from. The most frequent words are
                used. A character that occurs only in other words is not known.

        Returns:
            A `WordPieceTokenizer`.

        Raises:
            VocabularySizeError: `vocabulary_size` is smaller than the number of symbols and pieces
                of one known character, with and without `##`. The attribute `least` of the error is
                the smallest possible size.
            ValueError: Another argument is out of range, or the text has no words.
        """
        check_texts("lines", lines)
        if not is_whole(vocabulary_size) or vocabulary_size < 1:
            raise ValueError(
                "`vocabulary_size` must be a positive integer. Received: "
                f"vocabulary_size={vocabulary_size!r}"
            )
        if not 0 < character_coverage <= 1:
            raise ValueError(
                "`character_coverage` must be greater than 0 and at most 1. Received: "
                f"character_coverage={character_coverage!r}"
            )
        symbols = check_symbols(symbols)
        counts = _word_counts(lines, symbols)
        characters = _covered_characters(counts, character_coverage)
        whole = (item for item in counts.most_common() if characters >= set(item[0]))
        words = dict(islice(whole, max_words))
        if not words:
            raise ValueError(
                "`lines` must contain a word whose characters are all covered by "
                "`character_coverage`. Give more text or raise `character_coverage`. "
                f"Received: {len(counts)} different words, character_coverage={character_coverage}"
            )
        try:
            return cls([*symbols, *_learn(words, vocabulary_size - len(symbols))], symbols)
        except VocabularySizeError as error:
            raise error.with_reserved(len(symbols)) from None

    @classmethod
    def load(cls, path: str | os.PathLike, symbols: Sequence[str] = ()) -> "WordPieceTokenizer":
        """Returns a tokenizer with the pieces of a file, one per line, such as BERT's `vocab.txt`.

        Args:
            path: Path of the file.
            symbols: Words that are never split, as in the constructor.
        """
        try:
            return cls([line.decode() for line in TextLines(path)], symbols)
        except ValueError as error:
            raise ValueError(f"Cannot use the tokenizer file {str(path)!r}: {error}") from None

    def save(self, path: str | os.PathLike) -> None:
        """Writes the pieces to a file, one per line, atomically.

        The file does not mark the pieces that are symbols, so pass `symbols` to `load` again.
        """
        replace_file(path, "".join(f"{piece}\n" for piece in self._pieces))

    def pieces(self) -> list[str]:
        """Returns the constructor's `pieces` without `<unk>`, then the symbols that were added."""
        return [piece for piece in self._pieces if piece != _UNKNOWN]

    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        words = _split_words(text, self._split)  # [T] or [N, (W)]
        pieces = self._tokenizer.tokenize(words)  # [..., (P)]
        return pieces.flat_values if pieces.shape.rank == 2 else pieces.merge_dims(-2, -1)

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        return join_words(words, _SPACING)

    def get_config(self) -> dict:
        return {"pieces": list(self._pieces), "symbols": list(self.symbols)}


def _checked(pieces: Sequence[str]) -> Sequence[str]:
    for piece, count in Counter(pieces).items():
        if count > 1 or not isinstance(piece, str) or piece.split() != [piece]:
            raise ValueError(
                "`pieces` and `symbols` must be non-empty strings without white space and without "
                f"duplicates. Received: {piece!r}" + (f", {count} times" if count > 1 else "")
            )
    return pieces


def _split_pattern(symbols: Sequence[str]) -> str:
    longest_first = sorted(symbols, key=len, reverse=True)
    return "|".join([*(re.escape(symbol) for symbol in longest_first), _SINGLE])


def _split_words(text: tf.Tensor, pattern: str) -> tf.Tensor | tf.RaggedTensor:
    """Splits texts `[]` or `[N]` into words `[W]` or `[N, (W)]`, around matches of the pattern."""
    text = as_text(text)
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    text = tf.strings.regex_replace(text, _INVISIBLE, "")
    text = tf.strings.regex_replace(text, _SPACE, " ")
    return tf.strings.split(tf.strings.regex_replace(text, f"({pattern})", r" \1 "))


def _word_counts(lines: Iterable[str | bytes], symbols: Sequence[str]) -> Counter[str]:
    """Counts the words, except for symbols."""
    pattern = _split_pattern(symbols)
    counts: Counter[bytes] = Counter()
    for block in _blocks(lines):
        words = _split_words(tf.constant(block), pattern).flat_values
        counts.update(words.numpy().tolist())
    decoded = Counter({word.decode(): count for word, count in counts.items()})
    for symbol in symbols:
        decoded.pop(symbol, None)
    return decoded


def _blocks(lines: Iterable[str | bytes], size: int = 4096) -> Iterator[list[str | bytes]]:
    rest = iter(lines)
    while block := list(islice(rest, size)):
        yield block


def _covered_characters(counts: Counter[str], coverage: float) -> set[str]:
    """Returns the most frequent characters that cover the given share of the text."""
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    needed = coverage * characters.total()
    covered, found = set(), 0
    for character, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if found >= needed:
            break
        covered.add(character)
        found += count
    return covered


def _learn(words: dict[str, int], size: int) -> list[str]:
    """Learns the pieces: all covered characters, and the most frequent longer pieces."""
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib

    characters = sorted({character for word in words for character in word})
    alone = tf.strings.regex_full_match(characters, _SINGLE).numpy()
    inside = [c for c, is_alone in zip(characters, alone, strict=True) if not is_alone]
    single = characters + [_SUFFIX + character for character in inside]
    if len(single) > size:
        raise VocabularySizeError(size, len(single))

    def learn(threshold: int) -> list[str]:
        pieces = wordpiece_tokenizer_learner_lib.learn(
            words,
            size,
            [],
            # Equal thresholds switch off the library's own search, which needs more steps.
            upper_thresh=threshold,
            lower_thresh=threshold,
            max_unique_chars=len(characters),
            joiner=_SUFFIX,
        )
        return single + [piece for piece in pieces if len(piece.removeprefix(_SUFFIX)) > 1]

    low, high = min(words.values()), max(words.values())
    threshold = max(round(high**0.5), low)
    found: list[str] = []
    while True:
        learned = learn(threshold)
        if len(found) < size or size <= len(learned) < len(found):
            found = learned
        if len(learned) < size:
            high = threshold - 1
        else:
            low = threshold + 1
        if low > high or size <= len(found) <= 1.1 * size:
            return found[:size]
        # The number of pieces is roughly inverse to the threshold.
        threshold = min(max(round(threshold * len(learned) / (1.05 * size)), low), high)
