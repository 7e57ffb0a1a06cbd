"""A text on a disk gives the batches of the same text in memory."""

import re
import subprocess
import sys

import numpy as np
import pytest

from keras_drill.data import (
    ContiguousBatches,
    EncodedText,
    StreamedText,
    TextLines,
    Vocabulary,
    WhitespaceTokenizer,
)
from keras_drill.data import streamed_text as module


@pytest.fixture
def small_records(monkeypatch):
    monkeypatch.setattr(module, "_TOKENS_PER_RECORD", 7)
    monkeypatch.setattr(module, "_RECORDS_PER_SHARD", 5)


def write(folder, ids):
    """In blocks of any lengths, some of them empty."""
    cuts = np.sort(np.random.default_rng(2).integers(0, len(ids) + 1, 13))
    return StreamedText.write(folder, np.split(ids, cuts))


def test_any_part_of_a_text(small_records, tmp_path):
    ids = np.random.default_rng(1).integers(0, 99, 263).astype("int32")
    text = write(tmp_path / "text", ids)
    again = StreamedText(tmp_path / "text")
    assert len(text) == len(again) == 263
    assert len(list((tmp_path / "text").glob("shard-*"))) == 8
    read = text.reader(2)
    for start in range(0, 264, 11):
        for stop in (start, start + 1, start + 7, start + 40, 263):
            if start <= stop <= 263:
                np.testing.assert_array_equal(again.read(start, stop), ids[start:stop])
                np.testing.assert_array_equal(read(start, stop), ids[start:stop])
    with pytest.raises(
        ValueError, match=r"<= 263, the number of tokens\. Received: start=3, stop=264"
    ):
        text.read(3, 264)


@pytest.mark.parametrize(
    "options",
    [{}, {"padding": True}, {"padding": True, "min_context": 37}, {"variable_length": True}],
)
@pytest.mark.parametrize(("num_shards", "first_batch"), [(1, 0), (1, 3), (2, 2), (6, 1)])
def test_batches_are_those_of_the_text_in_memory(
    options, num_shards, first_batch, small_records, tmp_path
):
    """Those of every shard, from any batch on; each shard reads its own rows alone."""
    ids = np.random.default_rng(1).integers(1, 99, 263).astype("int32")
    text = write(tmp_path / "text", ids)
    one, other = (ContiguousBatches(each, 6, 5, **options) for each in (ids, text))
    assert (one.num_batches, one.num_targets) == (other.num_batches, other.num_targets)
    for shard in range(num_shards):
        pair = [
            each.dataset(2, first_batch, num_shards=num_shards, shard=shard)
            for each in (one, other)
        ]
        assert pair[0].element_spec == pair[1].element_spec
        batches = [list(each.as_numpy_iterator()) for each in pair]
        assert len(batches[0]) == one.num_batches - first_batch
        for expected, found in zip(*batches, strict=True):
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_shard_reads_its_own_rows_alone(small_records, tmp_path):
    """Records of other rows may be lost."""
    ids = np.arange(210, dtype="int32")
    text = write(tmp_path / "text", ids)
    expected = list(ContiguousBatches(ids, 6, 5).dataset(num_shards=2).as_numpy_iterator())
    (tmp_path / "text" / "shard-00005.tfrecord").write_bytes(b"")
    batches = ContiguousBatches(text, 6, 5, first_token=209)
    found = list(batches.dataset(num_shards=2).as_numpy_iterator())
    np.testing.assert_array_equal(found, expected)


def test_damage_is_found(small_records, tmp_path):
    text = write(tmp_path / "text", np.arange(100, dtype="int32"))
    path = tmp_path / "text" / "shard-00001.tfrecord"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged: record 5 in shard-00001\.tfrecord has changed"):
        text.read(0, 100)
    path.unlink()
    with pytest.raises(ValueError, match="damaged: some of its files are missing"):
        StreamedText(tmp_path / "text")


def test_damage_to_the_index_is_found(small_records, tmp_path):
    write(tmp_path / "text", np.arange(100, dtype="int32"))
    path = tmp_path / "text" / "index.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged: index\.npy has changed"):
        StreamedText(tmp_path / "text")
    path.write_bytes(content[:50])
    with pytest.raises(ValueError, match=r"damaged: index\.npy cannot be read"):
        StreamedText(tmp_path / "text")


def test_a_text_is_encoded_once(small_records, tmp_path):
    """The ids are those of `EncodedText`."""
    (tmp_path / "a.txt").write_text("the cat sees\n\nthe dog and the cat\n" * 5)
    words = WhitespaceTokenizer(), Vocabulary(["<unk>", "<eos>", "the", "cat"])
    lines = TextLines(tmp_path / "a.txt")
    expected = EncodedText.encode(lines, *words).ids
    for _ in range(2):
        text = StreamedText.encode(lines, *words, tmp_path / "cache")
        np.testing.assert_array_equal(np.concatenate(list(text.blocks())), expected)
        times = {path: path.stat().st_mtime_ns for path in text.folder.iterdir()}
    assert times == {path: path.stat().st_mtime_ns for path in text.folder.iterdir()}
    assert len(list((tmp_path / "cache").glob("*/"))) == 1
    other = StreamedText.encode(lines, words[0], Vocabulary(["<unk>", "<eos>", "dog"]), text.folder)
    assert 2 in np.concatenate(list(other.blocks())) and len(other) == len(text)


def test_half_a_text_is_none(tmp_path):
    def killed():
        yield np.arange(70000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StreamedText.write(tmp_path / "text", killed())
    with pytest.raises(ValueError, match=r"`StreamedText.write` wrote completely"):
        StreamedText(tmp_path / "text")
    assert len(StreamedText.write(tmp_path / "text", [np.arange(3)])) == 3
    with pytest.raises(FileExistsError, match=re.escape(str(tmp_path / "text"))):
        StreamedText.write(tmp_path / "text", [np.arange(3)])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("kept")
    with pytest.raises(
        FileExistsError, match=r"files of an interrupted call.*Received: .*'mine.txt'"
    ):
        StreamedText.write(tmp_path / "notes", [np.arange(3)])
    assert (tmp_path / "notes" / "mine.txt").read_text() == "kept"
    with pytest.raises(ValueError, match="`blocks` must contain tokens"):
        StreamedText.write(tmp_path / "empty", [])


LIMITED = """
import re, resource, sys
import numpy as np
import tensorflow as tf
from pathlib import Path
from keras_drill.data import (
    ContiguousBatches,
    EncodedText,
    StreamedText,
    TextLines,
    Vocabulary,
    WhitespaceTokenizer,
)

def megabytes():
    return int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

block = np.random.default_rng(1).integers(0, 30000, 1 << 20).astype("int32")
ids = lambda: (block for _ in range(70))  # 280 MiB
text = StreamedText.write(sys.argv[1], ids())
batches = ContiguousBatches(text, 16, 4096)
next(iter(batches.dataset()))
limit = int(megabytes() + 128) << 20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
total = sum(int(targets.numpy().sum()) for _, targets in batches.dataset())
assert total == 70 * int(block.sum()), total
try:
    np.concatenate(list(ids()))
    print("no limit")
except MemoryError:
    print("flat")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_a_text_larger_than_memory(tmp_path):
    """280 MB of ids in 128 MB beside what the process has."""
    command = [sys.executable, "-c", LIMITED, tmp_path / "text"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.strip() == "flat", done.stderr
