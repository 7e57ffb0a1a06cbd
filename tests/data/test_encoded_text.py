import concurrent.futures
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from keras_drill.data import EncodedText, TextLines, Vocabulary, WhitespaceTokenizer

VOCABULARY = ["<unk>", "<eos>", "the", "cat", "été"]


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "text.txt").write_text("the cat\n\n dog été  the\ncat", encoding="utf-8")
    return TextLines(tmp_path / "text.txt")


def test_encode(lines, tmp_path):
    vocabulary = Vocabulary(VOCABULARY)
    for cache in (None, tmp_path / "cache", tmp_path / "cache"):
        text = EncodedText.encode(lines, WhitespaceTokenizer(), vocabulary, cache=cache)
        assert text.ids.tolist() == [2, 3, 1, 1, 0, 4, 2, 1, 3, 1]
        assert text.line_lengths.tolist() == [3, 1, 4, 2]
        assert text.ids.dtype == text.line_lengths.dtype == np.int32


def test_cache_is_used_and_follows_what_matters(lines, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    tokenizer, vocabulary = WhitespaceTokenizer(), Vocabulary(VOCABULARY)

    def entries():
        return [path for path in cache.iterdir() if path.is_dir()]

    EncodedText.encode(lines, tokenizer, vocabulary, cache)
    assert len(entries()) == 1
    with monkeypatch.context() as patch:
        patch.setattr(Vocabulary, "ids", None)
        EncodedText.encode(lines, tokenizer, vocabulary, cache)
    EncodedText.encode(lines, WhitespaceTokenizer(lowercase=True), vocabulary, cache)
    EncodedText.encode(lines, tokenizer, Vocabulary([*VOCABULARY, "dog"]), cache)
    EncodedText.encode(TextLines(lines.files, 1), tokenizer, vocabulary, cache)
    assert len(entries()) == 4
    EncodedText.encode(lines, tokenizer, Vocabulary(VOCABULARY, end_token="cat"), cache)
    assert len(entries()) == 5
    lines.files[0].write_text("the the\n")
    text = EncodedText.encode(lines, tokenizer, vocabulary, cache)
    assert text.ids.tolist() == [2, 2, 1]


def test_save_and_load_in_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_drill.data.encoded_text._TOKENS_PER_SHARD", 101)
    monkeypatch.setattr("keras_drill.data.encoded_text._LINES_PER_RECORD", 3)
    random = np.random.RandomState(0)
    lengths = random.randint(1, 29, 97)
    text = EncodedText(random.randint(0, 31, lengths.sum()), lengths)
    text.save(tmp_path / "saved")
    assert len(list((tmp_path / "saved").glob("*.tfrecord"))) == -(-len(text) // 101)
    again = EncodedText.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.ids, text.ids)
    np.testing.assert_array_equal(again.line_lengths, text.line_lengths)
    sorted((tmp_path / "saved").glob("*.tfrecord"))[2].unlink()
    with pytest.raises(ValueError, match=r"damaged.*Delete the folder.*Received: '.*saved'"):
        EncodedText.load(tmp_path / "saved")


@pytest.mark.parametrize("name", ["description.json", "shard-00000-of-00001.tfrecord"])
@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "deep"])
def test_damage_is_named(name, how, tmp_path):
    EncodedText(np.array([3, 4, 1]), np.array([3])).save(tmp_path / "saved")
    path = tmp_path / "saved" / name
    content = path.read_bytes()
    changed = {
        "flipped": content[:14] + b"?" + content[15:],
        "cut": content[:-9],
        "empty": b"",
        "deep": b"[" * 100_000,
    }
    path.write_bytes(changed[how])
    with pytest.raises(ValueError, match=r"damaged.*Received: '.*saved"):
        EncodedText.load(tmp_path / "saved")


def test_several_at_once_make_one_entry(lines, tmp_path):
    vocabulary = Vocabulary(VOCABULARY)

    def encode(_):
        return EncodedText.encode(lines, WhitespaceTokenizer(), vocabulary, tmp_path / "cache")

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        assert [int(text.ids.sum()) for text in pool.map(encode, range(5))] == 5 * [18]
    entries = {path.suffix for path in (tmp_path / "cache").iterdir()}
    assert entries == {"", ".lock"}


@pytest.mark.slow
def test_killed_while_writing(lines, tmp_path):
    cache = tmp_path / "cache"
    program = (
        "import sys, time\n"
        "import keras_drill.data.encoded_text as module\n"
        "from keras_drill.data import *\n"
        "def hang(*_):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(600)\n"
        "module._record = hang\n"
        "EncodedText.encode(TextLines(sys.argv[1]), WhitespaceTokenizer(),\n"
        f"    Vocabulary({VOCABULARY!r}), sys.argv[2])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(lines.files[0]), str(cache)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [path for path in cache.iterdir() if path.name.startswith(".")]
    text = EncodedText.encode(lines, WhitespaceTokenizer(), Vocabulary(VOCABULARY), cache)
    assert len(text) == 10
    assert not [path for path in cache.iterdir() if path.name.startswith(".")]


def test_progress_is_shown(lines, capsys):
    vocabulary = Vocabulary(VOCABULARY)
    EncodedText.encode(lines, WhitespaceTokenizer(), vocabulary)
    assert not capsys.readouterr().out
    EncodedText.encode(lines, WhitespaceTokenizer(), vocabulary, verbose=1)
    assert capsys.readouterr().out


def test_text_without_words(tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n\n")
    with pytest.raises(ValueError, match=r"no words.*Received: .*blank\.txt"):
        EncodedText.encode(
            TextLines(tmp_path / "blank.txt"), WhitespaceTokenizer(), Vocabulary(VOCABULARY)
        )


def test_wrong_lengths():
    with pytest.raises(ValueError, match=r"`line_lengths`.*Received: ids of shape \(3,\)"):
        EncodedText([1, 2, 3], [2])


def test_ids_have_32_bits():
    limits = [-(2**31), 2**31 - 1]
    assert EncodedText(limits, [2]).ids.tolist() == limits
    for beyond in (-(2**31) - 1, 2**31):
        with pytest.raises(ValueError, match=r"`ids` must fit into int32\. Received: "):
            EncodedText([beyond], [1])
