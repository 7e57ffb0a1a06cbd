"""Examples are what TensorFlow reads and writes, and folders of them are texts like others."""

import gzip

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import EncodedText
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.data.serialize_examples import serialize_examples
from keras_drill.data.write_examples import ExampleWriter


def by_tensorflow(columns):
    """The same examples, one by one."""
    ids, lengths = columns["ids"]
    rows = np.split(ids, np.cumsum(lengths)[:-1])
    examples = []
    for text, row in zip(columns["text"], rows, strict=True):
        feature = {
            "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text])),
            "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=row)),
        }
        examples.append(tf.train.Example(features=tf.train.Features(feature=feature)))
    return examples


@pytest.mark.parametrize("largest", [1, 127, 128, 16383, 16384, 2**31, 2**62])
def test_examples_are_those_of_tensorflow(largest):
    random = np.random.default_rng(7)
    lengths = np.array([3, 0, 1, 131, 17000])
    ids = random.integers(0, largest, lengths.sum(), dtype=np.int64)
    ids[:2] = 0, largest
    texts = [b"", b"the cat", "größe\x00\n".encode(), b"a" * 128, b"b" * 70000]
    columns = {"text": texts, "ids": (ids, lengths)}
    written = serialize_examples(columns)
    for mine, theirs in zip(written, by_tensorflow(columns), strict=True):
        assert mine == theirs.SerializeToString(deterministic=True)
        assert tf.train.Example.FromString(mine) == theirs


def test_no_examples_and_no_ids():
    empty = np.zeros(0, int)
    assert serialize_examples({"text": []}) == []
    [example] = serialize_examples({"ids": (empty, np.array([0]))})
    assert not tf.train.Example.FromString(example).features.feature["ids"].int64_list.value


def test_texts_come_back_in_order_from_several_shards(tmp_path):
    lines = [f"line {number}".encode() for number in range(101)]
    for split in ("train", "test"):
        with ExampleWriter(tmp_path, split, shard_bytes=500) as writer:
            for start in range(0, 101, 11):
                writer.write({"text": lines[start : start + 11]})
        assert writer.num_examples == 101
    folder = ExampleFolder(tmp_path)
    assert list(folder.splits) == ["train", "test"] and len(folder.splits["train"]) > 2
    assert [list(folder.lines(split, "text")) for split in folder.splits] == [lines] * 2
    assert [len(block) for block in folder.lines("train", "text").blocks(50)] == [50, 50, 1]
    raw = b"".join(gzip.decompress(file.read_bytes()) for file in folder.splits["train"])
    assert raw.count(b"line ") == 101


def test_ids_come_back(tmp_path):
    text = EncodedText([5, 300, 2, 70000, 2, 2], [3, 2, 1])
    with ExampleWriter(tmp_path, "train") as writer:
        writer.write({"text_ids": (text.ids, text.line_lengths)})
    read = ExampleFolder(tmp_path).encoded("train", "text")
    np.testing.assert_array_equal(read.ids, text.ids)
    np.testing.assert_array_equal(read.line_lengths, text.line_lengths)
    with pytest.raises(ValueError, match=r"feature 'source_ids' .* is missing or empty"):
        ExampleFolder(tmp_path).encoded("train", "source")


def test_bad_folders_are_named(tmp_path):
    assert not ExampleFolder.is_at(tmp_path)
    with pytest.raises(ValueError, match="`path` must contain a folder such as 'Split-train'"):
        ExampleFolder(tmp_path)
    with ExampleWriter(tmp_path, "train") as writer:
        writer.write({"text": [b"line"]})
    folder = ExampleFolder(tmp_path)
    with pytest.raises(ValueError, match=r"no feature 'source' .*Received: .*Split-train"):
        list(folder.lines("train", "source"))
    [file] = folder.splits["train"]
    file.write_bytes(file.read_bytes()[:-15])
    with pytest.raises(ValueError, match="The examples are damaged"):
        list(folder.lines("train", "text"))


def test_bytes_that_are_no_examples_are_named(tmp_path):
    with ExampleWriter(tmp_path, "train") as writer:
        writer.write({"text": [b"line"]})
    [file] = ExampleFolder(tmp_path).splits["train"]
    with tf.io.TFRecordWriter(str(file), tf.io.TFRecordOptions("GZIP")) as writer:
        writer.write(b"\x8e\xff")
    with pytest.raises(ValueError, match=r"no feature 'text' .*Received: .*Split-train"):
        list(ExampleFolder(tmp_path).lines("train", "text"))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"words": 7}', b'{"word": ""}', b"\xff"])
def test_damage_to_the_fingerprint_is_named(content, tmp_path):
    with ExampleWriter(tmp_path, "train") as writer:
        writer.write({"text": [b"line"]})
    (tmp_path / "encoding.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"Received: '.*encoding\.json'"):
        ExampleFolder(tmp_path).encoded_by  # noqa: B018


def test_a_fingerprint_is_that_of_the_content(tmp_path):
    folders = []
    for name, text in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        with ExampleWriter(tmp_path / name, "train") as writer:
            writer.write({"text": [text]})
        folders.append(ExampleFolder(tmp_path / name).lines("train", "text").fingerprint())
    assert folders[0] == folders[1] != folders[2]
