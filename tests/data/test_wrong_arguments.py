"""Every public name of `keras_drill.data` with arguments that it cannot take, and natural ones."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from keras_drill import data
from keras_drill.data import (
    ContiguousBatches,
    Corpus,
    DialogCorpus,
    EncodedText,
    Lowercase,
    MosesTokenization,
    PairBatches,
    ParallelCorpus,
    ParallelText,
    PreprocessedLines,
    PreprocessedTokenizer,
    SentenceBatches,
    SentencePieceTokenizer,
    StreamedText,
    TextLines,
    UnicodeNormalization,
    Vocabulary,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
    read_word_vectors,
    word_bytes,
)

WORDS = WhitespaceTokenizer()
VOCABULARY = Vocabulary(["<unk>", "<eos>", "a", "b"])
TEXT = EncodedText([2, 3, 1, 2, 1], [3, 2])
LINES = ["a b", "a"]


def encode(lines=LINES, tokenizer=WORDS, vocabulary=VOCABULARY):
    return EncodedText.encode(lines, tokenizer, vocabulary)


WRONG = {
    "encode one text": lambda: encode("a b"),
    "encode nothing": lambda: encode(None),
    "encode numbers": lambda: encode([1, 2]),
    "encode no lines": lambda: encode([]),
    "encode blank lines": lambda: encode(["", " "]),
    "encode several lines in one": lambda: encode(["a\nb"]),
    "encode with a class": lambda: encode(tokenizer=WhitespaceTokenizer),
    "encode with a list": lambda: encode(vocabulary=["a"]),
    "stream one text": lambda: StreamedText.encode("a b", WORDS, VOCABULARY, "cache"),
    "stream with a class": lambda: StreamedText.encode(LINES, WhitespaceTokenizer, VOCABULARY, "c"),
    "stream words": lambda: StreamedText.write("never-written", [["a"]]),
    "ids that are words": lambda: EncodedText(["a"], [1]),
    "ids that are floats": lambda: EncodedText([1.5], [1]),
    "ids along two axes": lambda: EncodedText([[1], [2]], [2]),
    "ids that are uneven": lambda: EncodedText([[1], [2, 3]], [3]),
    "ids too large": lambda: EncodedText([2**40], [1]),
    "lines of no length": lambda: EncodedText([1, 1], [2, 0]),
    "contiguous floats": lambda: ContiguousBatches([0.5] * 9, 1, 2),
    "contiguous words": lambda: ContiguousBatches(["a"] * 9, 1, 2),
    "contiguous half rows": lambda: ContiguousBatches(TEXT, 1.5, 2),
    "contiguous text size": lambda: ContiguousBatches(TEXT, "1", 2),
    "contiguous first word": lambda: ContiguousBatches(TEXT, 1, 2, first_token="<eos>"),
    "contiguous epoch": lambda: ContiguousBatches(TEXT, 1, 2).dataset(epoch=-1),
    "contiguous epochs": lambda: ContiguousBatches(TEXT, 1, 2).dataset(epochs=0),
    "contiguous shard": lambda: ContiguousBatches(TEXT, 2, 2).dataset(num_shards=2.0),
    "sentences of ids": lambda: SentenceBatches([2, 3, 1], 1, 1),
    "sentences with a word": lambda: SentenceBatches(TEXT, 1, "<eos>"),
    "sentences and a seed": lambda: SentenceBatches(TEXT, 1, 1, seed="1"),
    "sentences and a large seed": lambda: SentenceBatches(TEXT, 1, 1, seed=2**32),
    "sentences with a negative id": lambda: SentenceBatches(TEXT, 1, -1),
    "pairs of ids": lambda: PairBatches([2, 1], [2, 1], 1, batch_size=1),
    "pairs with a word": lambda: PairBatches(TEXT, TEXT, "<eos>", batch_size=1),
    "pairs and an epoch": lambda: PairBatches(TEXT, TEXT, 1, batch_size=1).dataset(epoch=0.5),
    "corpus of nothing": lambda: Corpus(None),
    "corpus of a number": lambda: Corpus(3),
    "corpus of numbers": lambda: Corpus([3]),
    "corpus of a mapping": lambda: Corpus({"train": 3}),
    "dialogs of nothing": lambda: DialogCorpus(None),
    "dialogs and a mark": lambda: DialogCorpus({"train": "gone"}, turn_end=3),
    "pairs of nothing": lambda: ParallelCorpus(None),
    "pairs of three": lambda: ParallelCorpus(["a", "b", "c"]),
    "pairs of a mapping": lambda: ParallelCorpus({"train": 3}),
    "parallel numbers": lambda: ParallelText([1], [2]),
    "parallel texts": lambda: ParallelText("a", "b"),
    "parallel lengths": lambda: list(ParallelText(["a"], ["b", "c"])),
    "files of nothing": lambda: TextLines(None),
    "files of bytes": lambda: TextLines(b"a.txt"),
    "files of numbers": lambda: TextLines([3]),
    "lines of files": lambda: TextLines(TextLines(__file__)),
    "half a line": lambda: TextLines(__file__, first_line=0.5),
    "steps that are none": lambda: PreprocessedLines(LINES, [str.lower]),
    "steps that are one class": lambda: PreprocessedTokenizer(Lowercase, WORDS),
    "lines before steps": lambda: PreprocessedLines("a b", [Lowercase()]),
    "a tokenizer that is a class": lambda: PreprocessedTokenizer([], WhitespaceTokenizer),
    "form": lambda: UnicodeNormalization(3),
    "normalization": lambda: WordTokenizer(normalization="nfkd"),
    "symbols that are one text": lambda: MosesTokenization("en", symbols="__eou__"),
    "lower-case a number": lambda: Lowercase()(3),
    "normalise a number": lambda: UnicodeNormalization()([3]),
    "model of a number": lambda: SentencePieceTokenizer(5),
    "model of a path": lambda: SentencePieceTokenizer("runs/a/spm.model"),
    "model of nothing": lambda: SentencePieceTokenizer(None),
    "sentence pieces of one text": lambda: SentencePieceTokenizer.train("a b", 9),
    "word pieces of one text": lambda: WordPieceTokenizer.train("a b", 9),
    "word pieces of numbers": lambda: WordPieceTokenizer.train([1], 9),
    "pieces that are one text": lambda: WordPieceTokenizer("abc"),
    "pieces that are numbers": lambda: WordPieceTokenizer([1]),
    "tokens that are one text": lambda: Vocabulary("abc"),
    "tokens that are numbers": lambda: Vocabulary([1, 2]),
    "tokens that are bytes": lambda: Vocabulary([b"<unk>", b"<eos>"]),
    "counts of words": lambda: Vocabulary(["<unk>", "<eos>"], counts=["a", "b"]),
    "vocabulary of one text": lambda: Vocabulary.build("a b", WORDS),
    "vocabulary without a tokenizer": lambda: Vocabulary.build(LINES, "words"),
    "vocabulary of no size": lambda: Vocabulary.build(LINES, WORDS, max_size=2.5),
    "vocabulary of no counts": lambda: Vocabulary.build(LINES, WORDS, min_count=0),
    "special tokens in one": lambda: Vocabulary.build(LINES, WORDS, special_tokens="<unk>"),
    "ids of numbers": lambda: VOCABULARY.ids([1, 2]),
    "ids of nothing": lambda: VOCABULARY.ids(None),
    "words of words": lambda: VOCABULARY.words(["a"]),
    "words of floats": lambda: VOCABULARY.words([0.5]),
    "words out of range": lambda: VOCABULARY.words([4]),
    "tokenize a number": lambda: WORDS.tokenize(3),
    "tokenize nothing": lambda: WordTokenizer().tokenize(None),
    "join a number": lambda: WORDS.detokenize(3),
    "join one text": lambda: WORDS.detokenize("a b"),
    "join numbers": lambda: WordTokenizer().detokenize([1, 2]),
    "bytes of one text": lambda: word_bytes("abc", 2),
    "bytes of numbers": lambda: word_bytes([1], 2),
    "bytes of no length": lambda: word_bytes(["a"], 1.5),
    "vectors of one text": lambda: read_word_vectors(__file__, "abc"),
    "vectors of numbers": lambda: read_word_vectors(__file__, [1]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_taken_is_said(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as caught:
        WRONG[name]()
    message = str(caught.value)
    assert "Received: " in message and len(message) < 500


def test_lists_are_lines():
    text = encode()
    assert text.ids.tolist() == [2, 3, 1, 2, 1] and text.line_lengths.tolist() == [3, 2]
    assert encode([b"a b\n", "a\r\n"]).ids.tolist() == encode(iter(LINES)).ids.tolist()
    assert Vocabulary.build(LINES, WORDS).tokens == ("<unk>", "<eos>", "a", "b")
    assert list(PreprocessedLines(["A b"], Lowercase())) == [b"a b"]
    assert list(ParallelText(["a"], ["b"])) == [(b"a", b"b")]


def test_lists_are_words_and_ids():
    assert VOCABULARY.ids(["b", "dog"]).numpy().tolist() == [3, 0]
    assert VOCABULARY.ids([["b"], ["a", "dog"]]).to_list() == [[3], [2, 0]]
    assert VOCABULARY.ids("b").numpy() == VOCABULARY.ids(np.array(["b"])).numpy()[0] == 3
    assert VOCABULARY.words([3, 2]).numpy().tolist() == [b"b", b"a"]
    assert WORDS.detokenize([["a", "b"], ["a"]]).numpy().tolist() == [b"a b", b"a"]
    assert WORDS.tokenize(["a b", "a"]).to_list() == [[b"a", b"b"], [b"a"]]


def test_batches_take_an_encoded_text_or_its_ids():
    of_text, of_ids = (
        [tokens.numpy().tolist() for tokens, _ in ContiguousBatches(ids, 1, 2).dataset()]
        for ids in (TEXT, TEXT.ids)
    )
    assert of_text == of_ids == [[[1, 2]], [[3, 1]], [[2]]]


def test_graphs_take_what_they_did():
    read = tf.function(lambda text: VOCABULARY.words(VOCABULARY.ids(WORDS.tokenize(text))))
    assert read(tf.constant(["a b", "c"])).to_list() == [[b"a", b"b"], [b"<unk>"]]


def test_every_public_name_is_tried():
    """Names that take nothing, or say so themselves, are the exceptions."""
    source = "".join(inspect.getsource(case) for case in WRONG.values())
    others = {"Lines", "Tokenizer", "Preprocessing"}  # abstract
    others |= {"VocabularySizeError", "MosesPunctuation", "pydoc_topics", "WhitespaceTokenizer"}
    others |= {"Paragraphs", "truncate_text"}
    assert {name for name in data.__all__ if name not in source} <= others
