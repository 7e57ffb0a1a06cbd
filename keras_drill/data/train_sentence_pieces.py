"""Trains SentencePiece models and works around the limits of the library."""

import io
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keras_drill.data.checks import check_is, shown
from keras_drill.data.tokenizer import VocabularySizeError

# Special tokens of a vocabulary, with which pieces must not be confused.
RESERVED = ("<pad>", "<eos>", "<sos>")
# The library silently drops longer lines (in bytes), and ends the process if a line has 65,536
# characters without a space. NFKC replaces some characters by 18 characters.
_LONGEST_PART = 3000
_MAX_BYTES = 1 << 16
_UNKNOWN_MARK = "\u2585"  # the library drops lines with this character
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def train_sentence_pieces(
    lines: Iterable[str | bytes],
    normalization: str,
    lowercase: bool,
    symbols: Sequence[str],
    **options: Any,
) -> bytes:
    """Learns a SentencePiece model; see `SentencePieceTokenizer.train`.

    Args:
        lines: The text.
        normalization: "identity" or "nmt_nfkc".
        lowercase: Whether the model lower-cases text.
        symbols: Pieces that are never split.
        **options: More options of the library's trainer.

    Returns:
        The model's bytes.
    """
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError as error:
        raise ImportError(
            "Training a SentencePiece model needs sentencepiece and a protobuf that fits it: "
            f"pip install --upgrade sentencepiece protobuf. Received: {error}"
        ) from error
    reader = _Reader(lines)
    written = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        if normalization == "identity":
            rules.write(_rules(lowercase))
            rules.flush()
            options["normalization_rule_tsv"] = rules.name
        else:
            options["normalization_rule_name"] = normalization + ("_cf" if lowercase else "")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(reader),
                model_writer=written,
                max_sentence_length=_MAX_BYTES,
                control_symbols=list(RESERVED),
                user_defined_symbols=list(symbols),
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                hard_vocab_limit=False,
                num_threads=1,  # the same pieces on every machine
                minloglevel=2,
                **options,
            )
        except (RuntimeError, OSError, SystemError) as error:
            reader.check()
            raise _explained(error, options["vocab_size"]) from None
    reader.check()
    model = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
    # Remove the path of the temporary file: the same text must give the same bytes.
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    return model.SerializeToString(deterministic=True)


def _explained(error: Exception, size: int) -> ValueError:
    found = _TOO_SMALL.search(str(error))
    if found:
        return VocabularySizeError(size, int(found[1]))
    return ValueError(
        f"SentencePiece cannot learn {size} pieces from this text: {error}. "
        f"Received: vocabulary_size={size}"
    )


def _rules(lowercase: bool) -> str:
    """Returns normalization rules: spaces replace other white space, optionally lower case.

    A vocabulary allows no white space in pieces, but the library's rules "identity" keep it. The
    library itself lower-cases only after NFKC.
    """
    rules = {ord(space): " " for space in "\t\n\v\f\r"}
    if lowercase:
        characters = (chr(code) for code in range(sys.maxunicode + 1))
        rules |= {ord(each): each.lower() for each in characters if each.lower() != each}
    return "".join(
        f"{code:X}\t{' '.join(f'{ord(character):X}' for character in text)}\n"
        for code, text in rules.items()
    )


class _Reader:
    """Iterable over the text, in lines that the library accepts.

    The library treats an error while reading as the end of the text. So call `check` afterwards.

    Args:
        lines: The text.
    """

    def __init__(self, lines: Iterable[str | bytes]):
        self._lines = lines
        self._problem: BaseException | None = None
        self._has_text = False

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._lines:
                check_is("lines", line, (str, bytes), "texts")
                text = line.decode() if isinstance(line, bytes) else line
                self._has_text = self._has_text or bool(text.strip())
                yield from _parts(text.replace(_UNKNOWN_MARK, " "))
        except BaseException as error:
            self._problem = error
            raise

    def check(self) -> None:
        """Raises the error that occurred while reading, or `ValueError` if there was no text."""
        if self._problem is not None:
            raise self._problem from None
        if not self._has_text:
            raise ValueError(
                f"The text holds no words, only white space. Received: lines={shown(self._lines)}"
            )


def _parts(text: str) -> Iterator[str]:
    """Splits a text at spaces into parts of a length that the library accepts.

    The split does not change the learned pieces, since no piece crosses a space.
    """
    start = 0
    while len(text) - start > _LONGEST_PART:
        end = text.rfind(" ", start + 1, start + _LONGEST_PART)
        end = start + _LONGEST_PART if end < 0 else end
        yield text[start:end]
        start = end
    yield text[start:]
