from pydoc_data.topics import topics

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import (
    EncodedText,
    Lowercase,
    MosesTokenization,
    PreprocessedTokenizer,
    SentencePieceTokenizer,
    TextLines,
    UnicodeNormalization,
    Vocabulary,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from keras_drill.export import AssetVocabulary, Side
from tests.export.checks import check_operations, check_same_answers

LINES = [" ".join(line.split()) for line in topics["import"].splitlines()]
SPECIAL = ("<pad>", "<unk>", "<eos>", "<sos>")
TEXTS = [
    "The import statement combines two operations.",
    "",
    "Two\nlines \r\n and\ttabs",
    "<eos> <pad> <unk> Größe 😀 日本語",
    "It is imported (or not), e.g. by import x: " * 7,
]
TOKENIZERS = {
    "whitespace": lambda: WhitespaceTokenizer(),
    "words": lambda: WordTokenizer(lowercase=False),
    "bpe": lambda: SentencePieceTokenizer.train(LINES, 211),
    "unigram": lambda: SentencePieceTokenizer.train(LINES, 211, kind="unigram"),
    "word pieces": lambda: WordPieceTokenizer.train(LINES, 211),
    "preprocessed": lambda: PreprocessedTokenizer(
        [UnicodeNormalization("NFKC"), Lowercase()],
        WordPieceTokenizer.train([line.lower() for line in LINES], 211),
    ),
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("\n".join(LINES) + "\n")
    return TextLines(path)


@pytest.fixture(scope="module", params=TOKENIZERS)
def side(request, lines):
    tokenizer = TOKENIZERS[request.param]()
    return Side(tokenizer, Vocabulary.build(lines, tokenizer, special_tokens=SPECIAL))


def test_texts_are_encoded_as_in_training(side, lines):
    expected = EncodedText.encode(lines, side.tokenizer, side.vocabulary)
    ids, lengths = side.encode(LINES)
    np.testing.assert_array_equal(lengths, expected.line_lengths)
    assert ids.dtype == lengths.dtype == tf.int32
    rows = np.split(expected.ids, np.cumsum(expected.line_lengths)[:-1])
    for row, found in zip(rows, ids.numpy(), strict=True):
        np.testing.assert_array_equal(found[: len(row)], row)
        assert (found[len(row) :] == side.vocabulary.pad_id).all()


def test_ids_are_decoded_to_what_the_tokenizer_shows(side):
    ids, _ = side.encode(LINES)
    shown = side.tokenizer.detokenize(side.tokenizer.tokenize(LINES)).numpy().tolist()
    assert side.decode(ids).numpy().tolist() == shown
    assert side.decode(ids[:6].numpy().reshape(2, 3, -1)).numpy().tolist() == [
        shown[:3],
        shown[3:6],
    ]
    start = tf.fill([len(LINES), 1], side.vocabulary.start_id)
    after = tf.fill([len(LINES), 2], 7)  # what follows the end is not read
    assert side.decode(tf.concat([start, ids, after], 1)).numpy().tolist() == shown


def test_lines_and_lengths(side):
    (two, one), lengths = side.encode(["a import\n x", "a import x"])
    np.testing.assert_array_equal(two, one)
    assert lengths[0] == lengths[1] <= two.shape[0]
    whole, lengths = side.encode(TEXTS)
    cut, before = side.encode(TEXTS, max_tokens=5)
    np.testing.assert_array_equal(before, lengths)
    for row, length in enumerate(np.minimum(lengths, 5)):
        np.testing.assert_array_equal(cut[row, : length - 1], whole[row, : length - 1])
        assert cut[row, length - 1] == side.vocabulary.end_id
        assert not cut[row, length:].numpy().any()
    assert cut.shape == (5, 5)
    empty, none = side.encode(tf.constant([], tf.string))
    assert empty.shape == (0, 0) and none.shape == (0,)
    assert side.decode(empty).shape == (0,)
    assert side.decode(np.zeros((2, 0), "int32")).numpy().tolist() == [b"", b""]


def test_special_tokens_cannot_be_written(side):
    ids, lengths = side.encode(["<eos> <pad> <sos> a"])
    assert side.vocabulary.pad_id not in ids[0, : int(lengths[0])].numpy()
    if isinstance(side.tokenizer, SentencePieceTokenizer | WordPieceTokenizer):
        inner = ids[0, : int(lengths[0]) - 1].numpy()
        assert not set(inner) & {side.vocabulary.end_id, side.vocabulary.pad_id}


class Codec:
    """What `check_same_answers` asks, over `encode` and `decode`."""

    def __init__(self, side):
        self.side = side

    def signatures(self):
        texts, ids = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.int32)

        def encode(texts):
            return dict(zip(("ids", "lengths"), self.side.encode(texts, 23), strict=True))

        def decode(ids):
            return {"texts": self.side.decode(ids)}

        return {
            "encode": tf.function(encode, input_signature=[texts], autograph=False),
            "decode": tf.function(decode, input_signature=[ids], autograph=False),
        }


@pytest.mark.slow
def test_saved_models_answer_without_this_package(lines, tmp_path):
    cases = []
    for number, make in enumerate(TOKENIZERS.values()):
        tokenizer = make()
        vocabulary = Vocabulary.build(lines, tokenizer, special_tokens=SPECIAL)
        ids = Side(tokenizer, vocabulary).encode(TEXTS)[0].numpy()
        path = tmp_path / f"words{number}" / "vocabulary.txt"
        vocabulary.save(path)
        side = Side(tokenizer, AssetVocabulary(vocabulary, path))
        codec = Codec(side)
        np.testing.assert_array_equal(side.encode(TEXTS)[0], ids)
        module = tf.Module()
        module.side = side
        folder = tmp_path / f"model{number}"
        tf.saved_model.save(module, str(folder), signatures=codec.signatures())
        check_operations(folder)
        assert (folder / "assets" / "vocabulary.txt").exists()
        requests = [
            ("encode", {"texts": np.array([text.encode() for text in TEXTS])}),
            ("decode", {"ids": ids}),
        ]
        cases.append((codec, folder, requests))
    (tmp_path / "answers").mkdir()
    names = check_same_answers(cases, tmp_path / "answers")
    assert names == [["decode", "encode"]] * len(TOKENIZERS)


def test_moses_is_refused(lines):
    tokenizer = PreprocessedTokenizer([MosesTokenization("en")], WhitespaceTokenizer(tidy=False))
    side = Side(tokenizer, Vocabulary.build(lines, tokenizer, special_tokens=SPECIAL))
    assert side.decode(side.encode(["It's a module."])[0]).shape == (1,)  # in Python it runs
    with pytest.raises(ValueError, match=r"PreprocessedTokenizer\.tokenizer"):
        Codec(side).signatures()["encode"].get_concrete_function()
