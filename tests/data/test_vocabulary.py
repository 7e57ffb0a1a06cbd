import subprocess
import sys

import pytest
import tensorflow as tf

from keras_drill.data import TextLines, Vocabulary, WhitespaceTokenizer, WordTokenizer


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "a.txt").write_text("b a <unk> b\n\nc <unk> b ä\na <eos> z\n")
    return TextLines(tmp_path / "a.txt")


def test_build_orders_by_count_then_alphabet(lines):
    vocabulary = Vocabulary.build(lines, WhitespaceTokenizer())
    assert vocabulary.tokens == ("<unk>", "<eos>", "b", "a", "c", "z", "ä")
    assert vocabulary.counts == (2, 5, 3, 2, 1, 1, 1)
    assert (vocabulary.unknown_id, vocabulary.end_id) == (0, 1)
    assert (vocabulary.start_id, vocabulary.pad_id) == (None, None)


def test_what_is_left_out_counts_as_unknown(lines):
    everything = sum(Vocabulary.build(lines, WhitespaceTokenizer()).counts)
    for options in ({"min_count": 2}, {"max_size": 4}):
        vocabulary = Vocabulary.build(lines, WhitespaceTokenizer(), **options)
        assert vocabulary.tokens == ("<unk>", "<eos>", "b", "a")
        assert vocabulary.counts == (5, 5, 3, 2)
        assert sum(vocabulary.counts) == everything


def test_special_tokens_come_first(lines):
    special = ("<pad>", "<unk>", "<sos>", "<eos>")
    vocabulary = Vocabulary.build(lines, WhitespaceTokenizer(), special_tokens=special)
    assert vocabulary.tokens[:4] == special
    assert (vocabulary.pad_id, vocabulary.start_id, vocabulary.end_id) == (0, 2, 3)
    assert len(set(vocabulary.tokens)) == len(vocabulary)


def test_other_names_of_special_tokens(lines):
    vocabulary = Vocabulary.build(
        lines, WhitespaceTokenizer(), special_tokens=("z", "</s>"), unknown_token="z",
        end_token="</s>",
    )  # fmt: skip
    assert vocabulary.ids(tf.constant(["nothing", "</s>"])).numpy().tolist() == [0, 1]


def test_ids_and_words_keep_shapes():
    vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat"])
    ragged = tf.ragged.constant([["the", "dog"], [], ["cat"]], dtype=tf.string)
    ids = vocabulary.ids(ragged)
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[2, 0], [], [3]]
    assert vocabulary.words(ids).to_list() == [[b"the", b"<unk>"], [], [b"cat"]]
    assert vocabulary.words(tf.constant([[2], [3]])).shape == (2, 1)


@pytest.mark.parametrize("counts", [None, [5, 7, 11, 3, 2]])
def test_save_and_load(tmp_path, counts):
    tokens = ["<unk>", "<eos>", "no\u00a0break", "日本", "\u2028"]
    vocabulary = Vocabulary(tokens, counts)
    path = tmp_path / "new" / "vocabulary.txt"
    vocabulary.save(path)
    vocabulary.save(path)
    assert path.read_text(encoding="utf-8").split("\n") == [*tokens, ""]
    again = Vocabulary.load(path)
    assert again.get_config() == vocabulary.get_config()
    assert Vocabulary(**again.get_config()).tokens == vocabulary.tokens
    files = {path.name for path in path.parent.iterdir()}
    assert files == {"vocabulary.txt"} | ({"vocabulary.counts"} if counts else set())


def test_vocabulary_saved_without_counts_leaves_none_of_an_older_one(tmp_path):
    path = tmp_path / "vocabulary.txt"
    Vocabulary(["<unk>", "<eos>", "a"], [1, 2, 3]).save(path)
    Vocabulary(["<unk>", "<eos>", "b"]).save(path)
    assert Vocabulary.load(path).counts is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("<unk>\n<eos>\na\na\n", r"distinct.*tokens\[2\] and tokens\[3\], both 'a'"),
        ("<eos>\na\n", "`unknown_token`, '<unk>'"),
        ("<unk>\na\n", "`end_token`, '<eos>'"),
        ("<unk>\n<eos>\ntwo words\n", r"white space.*Received: tokens\[2\]='two words'"),
        ("<unk>\n<eos>\n\na\n", r"white space.*Received: tokens\[2\]=''"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "vocabulary.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(path)


def test_bad_counts_and_sizes(tmp_path, lines):
    with pytest.raises(ValueError, match=r"`counts`.*Received: 1 counts"):
        Vocabulary(["<unk>", "<eos>"], [1])
    with pytest.raises(ValueError, match="`tokens` must not be empty"):
        Vocabulary([])
    with pytest.raises(ValueError, match=r"`max_size`.*Received: max_size=2"):
        Vocabulary.build(lines, WhitespaceTokenizer(), max_size=2)
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(ValueError, match=r"no words.*Received: "):
        Vocabulary.build(TextLines(tmp_path / "blank.txt"), WhitespaceTokenizer())


def test_counts_that_are_no_numbers_are_told_by_their_line(tmp_path):
    path = tmp_path / "vocabulary.txt"
    Vocabulary(["<unk>", "<eos>", "a"], [5, 7, 3]).save(path)
    counts = path.with_suffix(".counts")
    counts.write_text("5\n 7 \n3\n")
    assert Vocabulary.load(path).counts == (5, 7, 3)
    counts.write_text("5\n7\nmany\n")
    with pytest.raises(ValueError, match=r"line 3 is 'many'.*Received: .*vocabulary\.counts"):
        Vocabulary.load(path)


class Encoder(tf.Module):
    """Words to ids and back, by both tokenizers."""

    def __init__(self):
        super().__init__()
        self.tokenizers = [WhitespaceTokenizer(), WordTokenizer()]
        self.vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat", "été", "don't", ",", "."])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode(self, text):
        return [
            self.vocabulary.ids(tokenizer.tokenize(text)).to_tensor(0)
            for tokenizer in self.tokenizers
        ]

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def show(self, ids):
        return [tokenizer.detokenize(self.vocabulary.words(ids)) for tokenizer in self.tokenizers]


@pytest.mark.slow
def test_saved_model_gives_the_same_ids_in_a_fresh_process(tmp_path):
    encoder = Encoder()
    texts = ["The cat, the CAT.", "don't été E\u0301te\u0301", "", "\u00a0the\u3000cat \U0001f600"]
    tf.saved_model.save(encoder, str(tmp_path / "saved"))
    program = f"""
import sys, tensorflow as tf, tensorflow_text
encoder = tf.saved_model.load(sys.argv[1])
for ids in encoder.encode(tf.constant({texts!r})):
    print(ids.numpy().tolist(), [text.numpy().tolist() for text in encoder.show(ids)])
assert not any(name.startswith("keras_drill") for name in sys.modules)
"""
    fresh = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "saved")],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    expected = [
        f"{ids.numpy().tolist()} {[text.numpy().tolist() for text in encoder.show(ids)]}"
        for ids in encoder.encode(tf.constant(texts))
    ]
    assert fresh.stdout.splitlines() == expected
