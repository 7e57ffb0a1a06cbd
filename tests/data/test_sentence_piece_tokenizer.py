import importlib
import unicodedata
from pydoc_data.topics import topics

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import (
    EncodedText,
    SentencePieceTokenizer,
    TextLines,
    Vocabulary,
    VocabularySizeError,
)

train_sentence_pieces = importlib.import_module("keras_drill.data.train_sentence_pieces")
sentencepiece = pytest.importorskip("sentencepiece")
LINES = [" ".join(line.split()) for line in topics["import"].splitlines()]  # English prose
TEXTS = [
    "The import statement combines two operations.",
    "",
    "  many   spaces\t",
    "<eos> and <unk> and <pad>",
    "Größe, naïve, 日本語, 😀",
    "x" * 300,
]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    return SentencePieceTokenizer.train(LINES, 311, kind=request.param)


def test_pieces_are_the_text_again(tokenizer):
    pieces = tokenizer.tokenize(tf.constant(TEXTS))
    texts = tokenizer.detokenize(pieces)
    expected = [" ".join(text.split()) for text in TEXTS]
    assert [text.decode() for text in texts.numpy()] == expected
    for piece in ("<eos>", "<pad>", "<sos>"):
        assert piece.encode() not in pieces.flat_values.numpy()


def test_it_gives_what_the_library_gives(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.model")
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    pieces = tokenizer.tokenize(tf.constant(LINES[:50]))
    for line, found in zip(LINES[:50], pieces.to_list(), strict=True):
        assert [piece.decode() for piece in found] == library.encode(line, out_type=str)


@pytest.mark.slow
def test_in_graphs_and_saved_models(tokenizer, tmp_path):
    module = tf.Module()
    module.tokenizer = tokenizer
    module.run = tf.function(
        lambda texts: tokenizer.detokenize(tokenizer.tokenize(texts)),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.run(tf.constant(TEXTS)), module.run(tf.constant(TEXTS)))


def test_with_a_vocabulary(tokenizer, tmp_path):
    (tmp_path / "text").write_text("\n".join(LINES) + "\n")
    lines = TextLines(tmp_path / "text")
    vocabulary = Vocabulary.build(lines, tokenizer, special_tokens=("<pad>", "<unk>", "<eos>"))
    assert vocabulary.pad_id == 0 and len(vocabulary) <= 311 + 3
    assert set(vocabulary.tokens[3:]) <= set(tokenizer.pieces())
    text = EncodedText.encode(lines, tokenizer, vocabulary)
    assert (text.ids != vocabulary.unknown_id).all()


def test_config_file_and_fingerprint(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.model")
    again = SentencePieceTokenizer(**tokenizer.get_config())
    loaded = SentencePieceTokenizer.load(tmp_path / "tokenizer.model")
    assert again.fingerprint == loaded.fingerprint == tokenizer.fingerprint
    other = SentencePieceTokenizer.train(LINES, 211)
    assert other.fingerprint != tokenizer.fingerprint
    assert len(other.pieces()) < len(tokenizer.pieces())
    assert SentencePieceTokenizer.train(LINES, 211).fingerprint == other.fingerprint


def test_bytes_for_unknown_characters():
    options = {"character_coverage": 0.98, "lowercase": True}
    plain = SentencePieceTokenizer.train(LINES, 311, **options)
    spelt = SentencePieceTokenizer.train(LINES, 511, byte_fallback=True, **options)
    assert spelt.detokenize(spelt.tokenize("A 日")).numpy().decode() == "a 日"
    assert b"<0xE6>" in spelt.tokenize("日").numpy()
    assert len(plain.tokenize("日").numpy()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "words"}, "`kind` must be one of"),
        ({"normalization": "nfd"}, "`normalization` must be one of"),
        ({"vocabulary_size": 0}, "`vocabulary_size` must be a positive"),
        ({"vocabulary_size": 7}, "`vocabulary_size` must be at least"),
        ({"character_coverage": 0.9}, "`character_coverage` must be from 0.98 to 1"),
        ({"symbols": ["<a>", "<a>"]}, "`symbols` must be distinct"),
        ({"symbols": ["<pad>"]}, "`symbols` must not contain <pad>"),
        ({"lines": []}, "The text holds no words"),
        ({"lines": ["", " "]}, "The text holds no words"),
        ({"lines": "the cat"}, "`lines` must be texts, such as"),
        ({"lines": ["the cat", 3]}, "`lines` must be texts"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(**{"lines": LINES, "vocabulary_size": 311, **options})


def test_wrong_models(tmp_path):
    with pytest.raises(ValueError, match="no bytes"):
        SentencePieceTokenizer(b"")
    (tmp_path / "tokenizer.model").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="Cannot use the tokenizer file"):
        SentencePieceTokenizer.load(tmp_path / "tokenizer.model")


def test_a_new_random_seed_leaves_the_model_alone(tokenizer):
    read = tf.function(tokenizer.tokenize)
    before = read(tf.constant(["the cat sat"])).to_list()
    keras.utils.set_random_seed(3)  # clears TensorFlow's kernels
    assert read(tf.constant(["the cat sat"])).to_list() == before
    assert tokenizer.tokenize(tf.constant(["the cat sat"])).to_list() == before


def test_an_error_while_lines_are_read_is_that_of_the_reader(tmp_path):
    """The library takes it for the end of the text, or says something else."""
    for lines in (b"the cat\n" * 9 + b"\xff\n", b"\xff\n"):
        (tmp_path / "text").write_bytes(lines)
        with pytest.raises(ValueError, match="byte 0xff in line"):
            SentencePieceTokenizer.train(TextLines(tmp_path / "text"), vocabulary_size=13)

    def interrupted():
        yield "the cat sat on the mat"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SentencePieceTokenizer.train(interrupted(), vocabulary_size=13)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_size_that_an_error_names_works(kind):
    with pytest.raises(VocabularySizeError) as caught:
        SentencePieceTokenizer.train(LINES, 7, kind=kind)
    least = caught.value.least
    assert f"must be at least {least} for this text" in str(caught.value)
    assert SentencePieceTokenizer.train(LINES, least, kind=kind).pieces()
    with pytest.raises(VocabularySizeError):
        SentencePieceTokenizer.train(LINES, least - 1, kind=kind)


WIDE = ["他说，你好：ＡＢＣ ﬁne Straße\u00a0①", "é and e\u0301"]


@pytest.mark.parametrize("lowercase", [False, True])
def test_nothing_is_normalised_that_nobody_asks_for(lowercase):
    tokenizer = SentencePieceTokenizer.train(WIDE * 9, 60, lowercase=lowercase)
    expected = [text.lower() if lowercase else text for text in WIDE]
    found = tokenizer.detokenize(tokenizer.tokenize(tf.constant(WIDE)))
    assert [text.decode() for text in found.numpy()] == expected
    # Tabs are spaces, for no word of a vocabulary has white space in it.
    assert tokenizer.detokenize(tokenizer.tokenize("\té\tand \r")).numpy().decode() == "é and"


def test_normalisation_of_the_library_on_request():
    tokenizer = SentencePieceTokenizer.train(WIDE * 9, 60, normalization="nmt_nfkc")
    found = tokenizer.detokenize(tokenizer.tokenize(WIDE[0])).numpy().decode()
    assert found == unicodedata.normalize("NFKC", WIDE[0])


def test_all_of_a_text_is_learned_from():
    """The library drops lines above 4,192 bytes, and those with a mark of its own."""
    lines = ["the cat", "字" * 70_000 + "符", "word " * 1000 + "quiz", "\u2585 japan"]
    tokenizer = SentencePieceTokenizer.train(lines, 60)
    assert set("字符qj") <= set("".join(tokenizer.pieces()))


def test_symbols_stay_whole_in_any_case():
    tokenizer = SentencePieceTokenizer.train(LINES, 311, symbols=["<2DE>", "x,y"], lowercase=True)
    pieces = tokenizer.tokenize("THE<2DE> x,y").numpy().tolist()
    assert b"<2DE>" in pieces and b"x,y" in pieces and b"<2DE>".decode() in tokenizer.pieces()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [""]),
        ("abcde", ["abcde"]),
        ("abcdefg", ["abcde", "fg"]),
        ("ab cd ef", ["ab", " cd", " ef"]),
        ("abcd efghij", ["abcd", " efgh", "ij"]),
        (" abcdefgh", [" abcd", "efgh"]),
    ],
)
def test_long_lines_are_cut_at_spaces_where_there_are_some(text, parts, monkeypatch):
    monkeypatch.setattr(train_sentence_pieces, "_LONGEST_PART", 5)
    assert list(train_sentence_pieces._parts(text)) == parts
