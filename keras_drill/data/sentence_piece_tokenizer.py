"""Pieces of words, learned from text by the SentencePiece library."""

import base64
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import keras
import tensorflow as tf

from keras_drill.data.atomic import replaced_file
from keras_drill.data.tokenizer import Tokenizer
from keras_drill.ops.private_interfaces import sentence_piece_pieces

KINDS = ("bpe", "unigram")
# What a vocabulary may add: no text gives these pieces, whatever is written in it.
RESERVED = ("<pad>", "<eos>", "<sos>")


@keras.saving.register_keras_serializable(package="keras_drill")
class SentencePieceTokenizer(Tokenizer):
    """Splits text into pieces of words, which together are the text again.

    A piece that begins a word begins with `▁`. Text is normalised as the model says (Unicode NFKC
    and single spaces, as a rule), and nothing else is lost: `detokenize` puts back what was
    written. Runs in graphs, by tensorflow-text; `train` needs the `sentencepiece` library.

    Args:
        model: A trained model: its bytes, or these in base64.

    Attributes:
        fingerprint: Hexadecimal digest of the model, which tells one from another.

    Example:

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
        self._model = base64.b64decode(model) if isinstance(model, str) else bytes(model)
        if not self._model:
            raise ValueError("`model` must be a trained SentencePiece model. Received: no bytes")
        self.fingerprint = hashlib.sha256(self._model).hexdigest()
        try:
            self._pieces = sentence_piece_pieces(self._model, f"sentencepiece-{self.fingerprint}")
            self._pieces.vocab_size()
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise ValueError(
                "`model` must be a trained SentencePiece model. Received: "
                f"{len(self._model)} bytes that are none ({error})"
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
    ) -> "SentencePieceTokenizer":
        """Learns pieces from text.

        Args:
            lines: The text, without ends of lines.
            vocabulary_size: Number of pieces. A text that has not so many gives fewer.
            kind: "bpe" or "unigram".
            character_coverage: Share of the text's characters that become pieces; rarer ones are
                unknown. 0.9995 suits languages with many characters.
            byte_fallback: Whether unknown characters are spelt in bytes, so that nothing is
                unknown.
            lowercase: Whether to lower-case all text.
            symbols: Pieces to have whatever the text is, and never to cut: `__eou__`, for example.

        Raises:
            ImportError: The `sentencepiece` library is not installed.
            ValueError: An argument is out of range, or the text is empty or too small.
        """
        if kind not in KINDS:
            raise ValueError(f"`kind` must be one of {KINDS}. Received: kind={kind!r}")
        if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
            raise ValueError(
                "`vocabulary_size` must be a positive integer. Received: "
                f"vocabulary_size={vocabulary_size!r}"
            )
        try:
            import sentencepiece
        except ImportError as error:
            raise ImportError(
                "Training a SentencePiece model needs the library: pip install sentencepiece"
            ) from error
        problems: list[BaseException] = []
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_texts(lines, problems),
                model_writer=written,
                vocab_size=vocabulary_size,
                model_type=kind,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
                control_symbols=list(RESERVED),
                user_defined_symbols=list(symbols),
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                hard_vocab_limit=False,
                num_threads=1,  # the same pieces on every machine
                minloglevel=2,
            )
        except (RuntimeError, OSError) as error:
            if problems:
                raise problems[0] from None
            raise ValueError(
                f"SentencePiece cannot learn {vocabulary_size} pieces from this text: {error}. "
                f"Received: vocabulary_size={vocabulary_size}"
            ) from None
        if problems:
            raise problems[0]
        return cls(written.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike) -> "SentencePieceTokenizer":
        """Reads a model from a file."""
        try:
            return cls(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"Cannot use the tokenizer file {str(path)!r}: {error}") from None

    def save(self, path: str | os.PathLike) -> None:
        """Writes the model to a file; by rename, so whole."""
        with replaced_file(path) as beside:
            beside.write_bytes(self._model)

    def pieces(self) -> list[str]:
        """All pieces that text may give, in the model's order.

        Raises:
            ValueError: One of them is not UTF-8.
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
        text = tf.convert_to_tensor(text, tf.string)
        return self._pieces.tokenize(
            tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        )

    def detokenize(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        words = tf.ragged.boolean_mask(words, tf.not_equal(words, ""))
        return self._pieces.detokenize(words)

    def get_config(self) -> dict:
        return {"model": base64.b64encode(self._model).decode()}


def _texts(lines: Iterable[str | bytes], problems: list[BaseException]) -> Iterator[str]:
    """The lines as text. The library takes an error while it reads for the end: it is kept."""
    try:
        for line in lines:
            yield line.decode() if isinstance(line, bytes) else line
    except BaseException as error:
        problems.append(error)
        raise
