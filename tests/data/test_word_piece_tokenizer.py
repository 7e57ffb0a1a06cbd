from collections import Counter
from pydoc_data.topics import topics

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from keras_drill.data import EncodedText, TextLines, Vocabulary, WordPieceTokenizer

LINES = [" ".join(line.split()) for line in topics["import"].splitlines()]  # English prose
TEXTS = [
    "The import statement combines two operations.",
    "",
    "  many   spaces\t",
    "<eos> and [UNK] and ##ing",
    "Größe, naïve, 日本語, 😀",
    "x" * 300,
    "can't stop__now e.g. 1,000.5 “quoted”",
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer.train(LINES, 311)


def decoded(pieces):
    return [[piece.decode() for piece in row] for row in pieces.to_list()]


def test_it_gives_what_the_tokenizer_of_bert_gives(tokenizer):
    pieces = ["<unk>", *tokenizer.pieces(), "日"]
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(pieces, tf.range(len(pieces), dtype=tf.int64)), 1
    )
    bert = tf_text.BertTokenizer(table, token_out_type=tf.string, unknown_token="<unk>")
    texts = [text for text in [*TEXTS, *LINES] if len(text) < 100]  # its words' longest
    expected = bert.tokenize(tf.constant(texts)).merge_dims(1, 2)
    found = WordPieceTokenizer(pieces).tokenize(tf.constant(texts))
    assert decoded(found) == decoded(expected)
    assert b"<unk>" in found[4].numpy() and "日".encode() in found[4].numpy()
    assert len(tokenizer.tokenize("x" * 300).numpy()) == 300
    assert tokenizer.tokenize("x" * 1001 + " x").numpy().tolist() == [b"<unk>", b"x"]


def test_pieces_are_the_longest_that_are_known():
    tokenizer = WordPieceTokenizer(["a", "ab", "##c", "##cd", "##d", "b", "abcd"])
    words = ["abc", "abcd", "acdd", "bb", "acx"]
    assert decoded(tokenizer.tokenize(tf.constant(words))) == [
        ["ab", "##c"],
        ["abcd"],
        ["a", "##cd", "##d"],
        ["<unk>"],
        ["<unk>"],
    ]


def test_detokenize_joins_the_words_and_guesses_spaces(tokenizer):
    known = set("".join(LINES)) - {" "}
    pieces = tokenizer.tokenize(tf.constant(LINES))
    assert b"<unk>" not in pieces.flat_values.numpy()
    for line, text in zip(LINES, tokenizer.detokenize(pieces).numpy(), strict=True):
        assert text.decode().replace(" ", "") == line.replace(" ", "")
    prose = [
        "It can't be (so they said) well-known: 1,000.5 of them!",
        'A "word".',
        "„Wort“",
        "“too”.",
    ]
    known |= set("„“”ö!?0123456789")
    tokenizer = WordPieceTokenizer([*known, *(f"##{c}" for c in known)])
    assert [t.decode() for t in tokenizer.detokenize(tokenizer.tokenize(prose)).numpy()] == prose
    padded = tf.constant([["##un", "##in", ""], ["", "", ""]])
    assert tokenizer.detokenize(padded).numpy().tolist() == [b"unin", b""]
    assert tokenizer.detokenize(tf.constant(["a", "##b"])).numpy() == b"ab"


def test_invisible_characters_and_bad_bytes_are_left_out():
    tokenizer = WordPieceTokenizer(["cafe", "coop", "a"])
    found = tokenizer.tokenize(b"\xef\xbb\xbfcafe\xc2\x85co\xc2\xadop\xff\x00a")
    assert found.numpy().tolist() == [b"cafe", b"coop", b"a"]


def test_symbols_stay_whole():
    plain = WordPieceTokenizer.train(["a b a b __eou__ b"], 13)
    assert "__eou__" not in plain.pieces()
    tokenizer = WordPieceTokenizer.train(["a b__eou__ b", "<s>"], 17, symbols=["__eou__", "<s>"])
    texts = tf.constant(["a__eou__b <s>a", "_ <"])
    assert decoded(tokenizer.tokenize(texts)) == [
        ["a", "__eou__", "b", "<s>", "a"],
        ["<unk>", "<unk>"],
    ]
    again = WordPieceTokenizer(**tokenizer.get_config())
    assert decoded(again.tokenize(texts)) == decoded(tokenizer.tokenize(texts))
    assert WordPieceTokenizer(tokenizer.pieces()).fingerprint != tokenizer.fingerprint


@pytest.mark.parametrize("size", [131, 157, 311])
def test_training_gives_so_many_pieces_and_all_characters(size):
    tokenizer = WordPieceTokenizer.train(LINES, size)
    pieces = tokenizer.pieces()
    assert len(pieces) == size == len(set(pieces))
    characters = set("".join(LINES)) - {" "}
    letters = {c for c in characters if c.isalnum()}
    assert set(pieces) >= characters | {f"##{c}" for c in letters}
    assert not {"##.", "##,"} & set(pieces)  # no word has a mark in it
    assert WordPieceTokenizer.train(LINES, size).fingerprint == tokenizer.fingerprint
    fewer = WordPieceTokenizer.train((line.encode() for line in LINES), 10**6)
    assert 311 < len(fewer.pieces()) < 10**4


def test_more_pieces_make_fewer_tokens(tokenizer):
    small = WordPieceTokenizer.train(LINES, 131)
    characters = sum(len(line.replace(" ", "")) for line in LINES)
    counts = [t.tokenize(tf.constant(LINES)).flat_values.shape[0] for t in (small, tokenizer)]
    assert counts[1] < 0.75 * counts[0] < 0.75 * characters


def test_character_coverage():
    text = ["abab " * 97 + "xyz"]
    tokenizer = WordPieceTokenizer.train(text, 11, character_coverage=0.99)
    assert tokenizer.tokenize("abab xyz").numpy().tolist() == [b"abab", b"<unk>"]


def test_in_graphs_and_saved_models(tokenizer, tmp_path):
    module = tf.Module()
    module.tokenizer = tokenizer
    module.run = tf.function(
        lambda texts: tokenizer.detokenize(tokenizer.tokenize(texts)),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    expected = tokenizer.detokenize(tokenizer.tokenize(tf.constant(TEXTS)))
    np.testing.assert_array_equal(loaded.run(tf.constant(TEXTS)), expected)
    assert loaded.run(tf.constant([], tf.string)).shape == (0,)


def test_with_a_vocabulary(tokenizer, tmp_path):
    (tmp_path / "text").write_text("\n".join(LINES) + "\n")
    lines = TextLines(tmp_path / "text")
    vocabulary = Vocabulary(["<pad>", "<unk>", "<eos>", *tokenizer.pieces()])
    text = EncodedText.encode(lines, tokenizer, vocabulary)
    assert (text.ids != vocabulary.unknown_id).all()
    counted = Vocabulary.build(lines, tokenizer)
    assert set(counted.tokens[2:]) <= set(tokenizer.pieces())


def test_files(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "vocab.txt")
    loaded = WordPieceTokenizer.load(tmp_path / "vocab.txt")
    assert loaded.fingerprint == tokenizer.fingerprint and loaded.pieces() == tokenizer.pieces()
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\na\n##b\n")  # as BERT's are
    of_bert = WordPieceTokenizer.load(tmp_path / "vocab.txt")
    assert of_bert.tokenize("ab [PAD] c").numpy().tolist() == [b"a", b"##b"] + [b"<unk>"] * 4
    (tmp_path / "vocab.txt").write_text("a\na\n")
    with pytest.raises(ValueError, match=r"Cannot use the tokenizer file .*'a', 2 times"):
        WordPieceTokenizer.load(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be a positive"),
        (
            {"vocabulary_size": 7},
            r"`vocabulary_size` must be at least \d+ for this text",
        ),
        ({"character_coverage": 1.1}, "`character_coverage` must be greater than 0"),
        ({"lines": []}, "`lines` must contain a word"),
        ({"lines": ["", "  "]}, "`lines` must contain a word"),
        ({"symbols": ["a b"]}, "without white space.*with the invalid or repeated 'a b'"),
        ({"symbols": ["<s>", "<s>"]}, "distinct.*with the invalid or repeated '<s>'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer.train(**{"lines": LINES, "vocabulary_size": 311, **options})


@pytest.mark.parametrize("pieces", [[], ["<unk>"], ["a", ""], ["a\u2028b"]])
def test_wrong_pieces(pieces):
    with pytest.raises(ValueError, match="`pieces`"):
        WordPieceTokenizer(pieces)


def test_counts_of_words_leave_symbols_out():
    from keras_drill.data.word_piece_tokenizer import _word_counts

    assert _word_counts(["a, <s>a", b"b"], ["<s>"]) == Counter({"a": 2, ",": 1, "b": 1})


@pytest.mark.parametrize(
    ("coverage", "expected"), [(0.4, "a"), (0.41, "ab"), (0.8, "ab"), (0.81, "abc"), (1.0, "abc")]
)
def test_the_most_frequent_characters_are_covered(coverage, expected):
    from keras_drill.data.word_piece_tokenizer import _covered_characters

    assert _covered_characters(Counter({"ba": 2, "c": 1}), coverage) == set(expected)


def test_only_the_most_frequent_words_are_learned_from():
    tokenizer = WordPieceTokenizer.train(["ab cd ab cd ab e"], 31, max_words=2)
    assert set("abcd") <= set(tokenizer.pieces()) and "e" not in tokenizer.pieces()


def test_a_threshold_that_gives_exactly_so_many_pieces_is_taken(monkeypatch):
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib

    from keras_drill.data.word_piece_tokenizer import _learn

    def learn(words, size, reserved, upper_thresh, **options):
        number = {10: 12, 15: 6}.get(upper_thresh, 0)
        return [f"{upper_thresh}:{place}" for place in range(number)]

    monkeypatch.setattr(wordpiece_tokenizer_learner_lib, "learn", learn)
    # With four pieces of one character: 16 at the first threshold, 10 at the next.
    assert _learn({"a": 100, "b": 1}, 10)[4:] == [f"15:{place}" for place in range(6)]
