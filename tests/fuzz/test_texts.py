"""Any bytes in the place of a text: read as they stand, or refused with a clear error."""

import tensorflow as tf
from hypothesis import strategies as st

from keras_drill.data import (
    DialogCorpus,
    ParallelCorpus,
    TextLines,
    Vocabulary,
    WordPieceTokenizer,
    WordTokenizer,
)
from keras_drill.data.sentence_piece_tokenizer import SentencePieceTokenizer
from tests.fuzz.damage import CHANGES, TEXTS, change, clear_errors
from tests.fuzz.fuzzed import fuzzed


@fuzzed(150, content=TEXTS)
def test_lines(folder, content):
    path = folder / "a.txt"
    path.write_bytes(content)
    with clear_errors(ValueError):
        lines = list(TextLines(path))
        if not content.startswith(b"\x1f\x8b"):
            text = content.removeprefix(b"\xef\xbb\xbf")
            expected = text.removesuffix(b"\n").split(b"\n")
            assert lines == [line.rstrip(b"\r") for line in expected]
        assert all(line.decode() is not None and b"\0" not in line for line in lines)
        assert list(TextLines(path, first_line=2)) == lines[2:]


@fuzzed(100, content=TEXTS, counts=st.none() | TEXTS)
def test_vocabularies(folder, content, counts):
    path = folder / "vocabulary.txt"
    path.write_bytes(content)
    (folder / "vocabulary.counts").unlink(missing_ok=True)
    if counts is not None:
        (folder / "vocabulary.counts").write_bytes(counts)
    with clear_errors(ValueError):
        vocabulary = Vocabulary.load(path)
        assert len(set(vocabulary.tokens)) == len(vocabulary) >= 2
        vocabulary.save(folder / "again.txt")
        assert Vocabulary.load(folder / "again.txt").tokens == vocabulary.tokens


@fuzzed(40, content=TEXTS, columns=st.booleans())
def test_pairs(folder, content, columns):
    path = folder / "a.tsv"
    path.write_bytes(content)
    with clear_errors(ValueError):
        corpus = ParallelCorpus(path if columns else (path, path))
        for pairs in corpus.splits.values():
            assert all(len(pair) == 2 for pair in pairs)


@fuzzed(40, content=TEXTS, turns=st.none() | st.integers(-1, 3))
def test_dialogues(folder, content, turns):
    path = folder / "a.txt"
    path.write_bytes(content)
    with clear_errors(ValueError):
        corpus = DialogCorpus({"train": path}, context_turns=turns)
        for source, target in corpus.splits["train"]:
            assert source.strip() and target.strip() and b"__eou__" not in target


@fuzzed(30, content=TEXTS)
def test_files_of_word_pieces(folder, content):
    path = folder / "vocab.txt"
    path.write_bytes(content)
    with clear_errors(ValueError):
        tokenizer = WordPieceTokenizer.load(path)
        assert set(tokenizer.tokenize("a 7 é").numpy()) <= {
            b"<unk>",
            *(piece.encode() for piece in tokenizer.pieces()),
        }


MODEL = SentencePieceTokenizer.train(["the cat sat", "the mat"] * 9, vocabulary_size=19)._model


@fuzzed(30, content=st.none() | st.binary(max_size=40), changes=CHANGES)
def test_sentence_piece_models(folder, content, changes):
    path = folder / "tokenizer.model"
    # What learning has made is in the first bytes; the rest are tables of Unicode.
    path.write_bytes(change(MODEL[:500], changes) + MODEL[500:] if content is None else content)
    with clear_errors(ValueError):
        tokenizer = SentencePieceTokenizer.load(path)
        tokenizer.pieces()


WORDS = WordTokenizer()


@fuzzed(50, text=TEXTS)
def test_any_bytes_are_cut_into_words(folder, text):
    words = WORDS.tokenize(tf.constant([text]))
    for word in words.flat_values.numpy():
        assert word.decode().split() == [word.decode()], word
    WORDS.detokenize(words)
