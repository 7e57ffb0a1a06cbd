import multiprocessing
import os
import signal
import subprocess
import sys
import time

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


def _encode(path, cache, queue):
    text = EncodedText.encode(TextLines(path), WhitespaceTokenizer(), Vocabulary(VOCABULARY), cache)
    queue.put(int(text.ids.sum()))


def test_two_processes_at_once(lines, tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    both = [
        context.Process(target=_encode, args=(lines.files[0], tmp_path / "cache", queue))
        for _ in range(2)
    ]
    for process in both:
        process.start()
    assert [queue.get(timeout=50), queue.get(timeout=50)] == [18, 18]
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert len([path for path in (tmp_path / "cache").iterdir() if path.is_dir()]) == 1


def test_killed_while_writing(lines, tmp_path):
    cache = tmp_path / "cache"
    program = (
        "import sys, time\n"
        "import keras_drill.data.encoded_text as module\n"
        "from keras_drill.data import *\n"
        "def hang(*_):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
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
    started = time.time()
    text = EncodedText.encode(lines, WhitespaceTokenizer(), Vocabulary(VOCABULARY), cache)
    assert time.time() - started < 10
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
    with pytest.raises(ValueError, match=r"no words.*Received: TextLines.*blank\.txt"):
        EncodedText.encode(
            TextLines(tmp_path / "blank.txt"), WhitespaceTokenizer(), Vocabulary(VOCABULARY)
        )


def test_wrong_lengths():
    with pytest.raises(ValueError, match=r"`line_lengths`.*Received: ids of shape \(3,\)"):
        EncodedText([1, 2, 3], [2])
