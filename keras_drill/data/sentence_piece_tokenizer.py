"""Subword tokenizer of the SentencePiece library."""

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import keras
import tensorflow as tf

from keras_drill.data.atomic import replaced_file
from keras_drill.data.checks import check_is, check_symbols, check_texts, is_whole, shown
from keras_drill.data.tokenizer import Tokenizer, as_text, as_words
from keras_drill.data.train_sentence_pieces import RESERVED, train_sentence_pieces
from keras_drill.ops.private_interfaces import sentence_piece_pieces

KINDS = ("bpe", "unigram")
NORMALIZATIONS = ("identity", "nmt_nfkc")
LEAST_COVERAGE = 0.98  # the least value that the library accepts


@keras.saving.register_keras_serializable(package="keras_drill")
class SentencePieceTokenizer(Tokenizer):
    """Tokenizer that splits text into subword pieces of a SentencePiece model.

    The first piece of each word begins with `▁`, which stands for the space before the word. The
    concatenation of the pieces is the normalized text. `detokenize` restores the text except for
    normalization: white space becomes single spaces, and the arguments `normalization` and
    `lowercase` of `train` may change more. The tokenizer uses tensorflow-text, and runs in graphs
    (`tf.function`, tf.data, SavedModels). `train` needs the `sentencepiece` library.

    Args:
        model: The content of a trained model file, as bytes or a base64 string. `train` and `load`
            make tokenizers without this argument.

    Attributes:
        fingerprint: Hexadecimal digest (hash) of the model.

    Example:

    >>> from keras_drill.data import SentencePieceTokenizer
    >>> tokenizer = SentencePieceTokenizer.train(["the cat sat", "the mat"] * 9, vocabulary_size=19)
    >>> pieces = tokenizer.tokenize("the cat")
    >>> pieces[0].numpy().decode()
    '▁the'
    >>> tokenizer.detokenize(pieces).numpy()
    b'the cat'

    References:
        - [Kudo & Richardson, 2018](https://arxiv.org/abs/1808.06226)
        - [Sennrich et al., 2016](https://arxiv.org/abs/1508.07909) (BPE)
    """

    def __init__(self, model: bytes | str):
        super().__init__(name="sentence_piece_tokenizer")
        check_is("model", model, (bytes, str), "bytes; `SentencePieceTokenizer.load` reads files")
        try:
            self._model = base64.b64decode(model) if isinstance(model, str) else model
        except ValueError:
            raise ValueError(
                "`model` must be bytes, or bytes in base64; `SentencePieceTokenizer.load` reads "
                f"files. Received: model={shown(model)}"
            ) from None
        if not self._model:
            raise ValueError("`model` must be a trained SentencePiece model. Received: no bytes")
        self.fingerprint = hashlib.sha256(self._model).hexdigest()
        try:
            self._pieces = sentence_piece_pieces(self._model, f"sentencepiece-{self.fingerprint}")
            self._pieces.vocab_size()
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise ValueError(
                "`model` must be a trained SentencePiece model. Received: "
                f"{len(self._model)} bytes that are not a model ({error})"
            ) from None

    @classmethod
    def train(
        cls,
        lines: Iterable[str | bytes],
        vocabulary_size: int,
        kind: str = "bpe",
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
        lowercase: bool = False,
        symbols: Sequence[str] = (),
        normalization: str = "identity",
    ) -> "SentencePieceTokenizer":
        """Learns a SentencePiece model from text, and returns its tokenizer.

        Args:
            lines: The text, an iterable of lines without line breaks, as strings or UTF-8 bytes.
                Lines may have any length.
            vocabulary_size: Largest number of pieces, including the `symbols`, 256 bytes with
                `byte_fallback`, and `<unk>`, `<pad>`, `<eos>` and `<sos>`. A small text may give
                fewer.
            kind: Algorithm, "bpe" (byte-pair encoding) or "unigram" (unigram language model).
            character_coverage: Share of the text's characters that must be known, from 0.98 to 1.
                Below 1, the rarest characters have no piece and are unknown. Use 0.9995 for
                languages with many characters.
            byte_fallback: Whether to encode unknown characters as pieces of one byte each, so that
                no text is unknown.
            lowercase: Whether to lower-case all text.
            symbols: Words that are always one piece, for example `__eou__`.
            normalization: "identity" changes only white space. "nmt_nfkc", the library's default,
                replaces compatible characters (`，` by `,`, `ﬁ` by `fi`) and drops invisible ones.

        Raises:
            ImportError: The `sentencepiece` library is not installed.
            VocabularySizeError: `vocabulary_size` is too small for the characters of the text. The
                attribute `least` of the error is the smallest possible size.
            ValueError: Another argument is out of range, or the text has no words.
        """
        check_texts("lines", lines)
        if kind not in KINDS:
            raise ValueError(f"`kind` must be one of {KINDS}. Received: kind={kind!r}")
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"`normalization` must be one of {NORMALIZATIONS}. "
                f"Received: normalization={normalization!r}"
            )
        if not is_whole(vocabulary_size) or vocabulary_size < 1:
            raise ValueError(
                "`vocabulary_size` must be a positive integer. Received: "
                f"vocabulary_size={vocabulary_size!r}"
            )
        if not LEAST_COVERAGE <= character_coverage <= 1:
            raise ValueError(
                f"`character_coverage` must be from {LEAST_COVERAGE} to 1. Received: "
                f"character_coverage={character_coverage!r}"
            )
        symbols = check_symbols(symbols)
        reserved = {"<unk>", *RESERVED} & set(symbols)
        if reserved:
            raise ValueError(
                f"`symbols` must not contain {', '.join(sorted(reserved))}, which are reserved. "
                f"Received: symbols={symbols!r}"
            )
        model = train_sentence_pieces(
            lines,
            normalization,
            lowercase,
            symbols,
            vocab_size=int(vocabulary_size),
            model_type=kind,
            character_coverage=character_coverage,
            byte_fallback=byte_fallback,
        )
        return cls(model)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "SentencePieceTokenizer":
        """Returns the tokenizer of a model file, which `save` or the library sentencepiece wrote.

        Raises:
            ValueError: The file is not such a model.
        """
        try:
            return cls(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"Cannot use the tokenizer file {str(path)!r}: {error}") from None

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model to a file, completely or not at all. An existing file is replaced."""
        with replaced_file(path) as beside:
            beside.write_bytes(self._model)

    def pieces(self) -> list[str]:
        """Returns all pieces that `tokenize` can return, in the model's order, except `<unk>`.

        Raises:
            ValueError: A piece is not UTF-8.
        """
        ids = tf.range(self._pieces.vocab_size())
        try:
            pieces = [piece.decode() for piece in self._pieces.id_to_string(ids).numpy()]
        except UnicodeDecodeError as error:
            raise ValueError(
                f"`model` has a piece that is not UTF-8 ({error.reason}). "
                f"Received: {error.object!r}"
            ) from None
        return [piece for piece in pieces if piece not in (*RESERVED, "<unk>")]

    def tokenize(self, text: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        text = as_text(text)
        return self._pieces.tokenize(
            tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        )

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        words = as_words(words)
        words = tf.ragged.boolean_mask(words, tf.not_equal(words, ""))
        return self._pieces.detokenize(words)

    def get_config(self) -> dict:
        return {"model": base64.b64encode(self._model).decode()}
