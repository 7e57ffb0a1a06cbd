import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import WhitespaceTokenizer, WordTokenizer


def words_of(tokenizer, text):
    return [word.decode() for word in tokenizer.tokenize(tf.constant(text)).numpy()]


def shown(tokenizer, words):
    return tokenizer.detokenize(tf.constant(words.split())).numpy().decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" = Robert <unk> = ", ["=", "Robert", "<unk>", "="]),
        ("", []),
        (" \t ", []),
        ("1 @,@ 000\r", ["1", "@,@", "000"]),
        ("no\u00a0break and\u2028separator", ["no\u00a0break", "and\u2028separator"]),
        ("ÉTÉ 日本 語", ["ÉTÉ", "日本", "語"]),
    ],
)
def test_whitespace_tokenizer_splits_at_ascii_space_alone(text, words):
    assert words_of(WhitespaceTokenizer(), text) == words


def test_whitespace_tokenizer_lower_cases_unicode():
    assert words_of(WhitespaceTokenizer(lowercase=True), "ÉTÉ <UNK>") == ["été", "<unk>"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't STOP, now!", "don't stop , now !"),
        ("It’s “quoted” (twice).", "it’s “ quoted ” ( twice ) ."),
        ("ﬁne １２３ №", "fine 123 no"),  # NFKC
        ("cafe\u0301 co\u00adop\ufeff", "café coop"),
        ("a\u00a0b\u2028c\u3000d\ve", "a b c d e"),
        ("e.g. the U.S.A. 1,000.50 3rd x_y2", "e.g. the u.s.a. 1,000.50 3rd x_y2"),
        ("object.__new__ end... wait", "object .__new__ end ... wait"),
        ("<unk> <eos> <b> C++ 😀", "<unk> <eos> < b > c + + 😀"),
        ("日本語。はい", "日本語 。 はい"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_word_tokenizer(text, words):
    assert words_of(WordTokenizer(), text) == words.split()


def test_word_tokenizer_keeps_every_visible_character():
    random = np.random.RandomState(3)
    alphabet = list("ab1.,'’-_<>()[]\"é日😀… \n")
    tokenizer = WordTokenizer(lowercase=False, normalization="NFC")
    texts = ["".join(random.choice(alphabet, size=31)) for _ in range(101)]
    for text, words in zip(texts, tokenizer.tokenize(tf.constant(texts)).to_list(), strict=True):
        assert b"".join(words).decode() == "".join(text.split())


def test_word_tokenizer_is_a_fixed_point_of_its_own_words():
    tokenizer = WordTokenizer()
    words = words_of(tokenizer, "He said: “don't”, e.g. 1,000.5% of x.name… <unk>?!")
    assert words_of(tokenizer, " ".join(words)) == words


def test_word_tokenizer_reads_what_it_shows():
    tokenizer = WordTokenizer()
    words = words_of(tokenizer, 'He said: "don\'t (ever) pay 1,000.50 for x.name," e.g. re-use.')
    text = tokenizer.detokenize(tf.constant(words)).numpy()
    assert words_of(tokenizer, text) == words


def test_word_tokenizer_replaces_bytes_that_are_no_utf8():
    assert words_of(WordTokenizer(), b"a \xff b") == ["a", "\ufffd", "b"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("well @-@ known 1 @,@ 000 @.@ 5", "well-known 1,000.5"),
        ("it 's ( not ) bad , is n't it ?", "it's (not) bad, isn't it?"),
        ('a " lobster red " one', 'a "lobster red" one'),
        ("$ N million", "$N million"),
    ],
)
def test_whitespace_detokenize(words, text):
    assert shown(WhitespaceTokenizer(), words) == text


def test_detokenize_takes_ragged_padded_and_empty():
    for tokenizer in (WhitespaceTokenizer(), WordTokenizer()):
        ragged = tf.ragged.constant([["a", ","], [], ["b"]], dtype=tf.string)
        assert tokenizer.detokenize(ragged).numpy().tolist() == [b"a,", b"", b"b"]
        padded = tf.constant([["a", ",", ""], ["", "", ""]])
        assert tokenizer.detokenize(padded).numpy().tolist() == [b"a,", b""]


@pytest.mark.parametrize(
    "tokenizer",
    [WhitespaceTokenizer(lowercase=True), WordTokenizer(lowercase=False, normalization="NFC")],
)
def test_config_round_trips_and_graph_equals_eager(tokenizer):
    again = type(tokenizer)(**tokenizer.get_config())
    assert again.get_config() == tokenizer.get_config()
    texts = tf.constant(["The Cat, sat.", "", "ÉTÉ"])
    traced = tf.function(again.tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    assert traced(texts).to_list() == tokenizer.tokenize(texts).to_list()


def test_unknown_normalization():
    with pytest.raises(ValueError, match=r"`normalization`.*Received: normalization='nfkc'"):
        WordTokenizer(normalization="nfkc")
