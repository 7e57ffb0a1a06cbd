import gzip
import os
from pathlib import Path

import pytest

from keras_drill.data import Corpus, EncodedText, Vocabulary, WhitespaceTokenizer

DATA = os.environ.get("KERAS_DRILL_DATA")


@pytest.mark.parametrize(
    "names",
    [
        ("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
        ("wiki.train.raw", "wiki.valid.raw", "wiki.test.raw"),
        ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"),
        ("train.txt", "valid.txt", "test.txt"),
        ("train", "dev", "test"),
        ("train.txt.gz", "val.txt.gz", "test.txt.gz"),
        ("dialogues_train.txt", "dialogues_validation.txt", "dialogues_test.txt"),
        ("en.train", "en.valid", "en.test"),
        ("Train.TXT", "Valid.TXT", "Test.TXT"),
    ],
)
def test_folder_namings(tmp_path, names):
    for name in names:
        content = f"{name}\n".encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for other in ("README.md", "vocab.txt", "ptb.char.train.txt", ".train.txt", "train.json"):
        (tmp_path / other).write_text("other\n")
    corpus = Corpus(tmp_path)
    splits = (corpus.train, corpus.valid, corpus.test)
    assert [list(lines) for lines in splits] == [[name.encode()] for name in names]


def test_folder_of_parts_and_of_folders(tmp_path):
    for part in (2, 0, 1):
        (tmp_path / f"train-{part:05d}-of-00003.txt").write_text(f"{part}\n")
    (tmp_path / "valid" / "deep").mkdir(parents=True)
    (tmp_path / "valid" / "b.txt").write_text("b\n")
    (tmp_path / "valid" / "deep" / "a.txt").write_text("a\n")
    corpus = Corpus(tmp_path)
    assert list(corpus.train) == [b"0", b"1", b"2"]
    assert list(corpus.valid) == [b"b", b"a"]
    with pytest.raises(ValueError, match=r"no 'test' text, only \['train', 'valid'\].*Received: "):
        _ = corpus.test


def test_parts_are_read_in_the_order_of_their_numbers(tmp_path):
    for part in range(1, 12):
        (tmp_path / f"train.{part}.txt").write_text(f"{part}\n")
    assert [int(line) for line in Corpus(tmp_path).train] == list(range(1, 12))
    assert Corpus(tmp_path).train.origin.endswith("train.11.txt (11 files)")


@pytest.mark.parametrize(
    "names",
    [("test_2016", "test_2017"), ("test.1", "test.3"), ("test2", "test3"), ("test1-1", "test2-2")],
)
@pytest.mark.parametrize("split", [True, False])
def test_numbered_texts_that_are_no_parts_are_not_joined(tmp_path, names, split):
    for name in ("train", *names):
        (tmp_path / f"{name}.txt").write_text("x\n")
    with pytest.raises(ValueError, match=r"several files that may be the 'test' text\. If"):
        Corpus(tmp_path, split=split)


@pytest.mark.parametrize("num_lines", [3, 20, 59, 1009])
def test_files_are_cut_by_lines(tmp_path, num_lines):
    lines = [f"line {i}".encode() for i in range(num_lines)]
    half = num_lines // 2
    (tmp_path / "a").write_bytes(b"\n".join(lines[:half]) + b"\n")
    (tmp_path / "b").write_bytes(b"\n".join(lines[half:]) + b"\n")
    corpus = Corpus([tmp_path / "a", tmp_path / "b"])
    parts = [list(corpus.train), list(corpus.valid), list(corpus.test)]
    assert [line for part in parts for line in part] == lines
    assert len(parts[1]) == len(parts[2]) == max(num_lines // 20, 1)
    assert list(Corpus([tmp_path / "a", tmp_path / "b"]).test) == parts[2]


def test_mapping(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(f"{name}\n")
    corpus = Corpus({"train": [tmp_path / "a", tmp_path / "b"], "test": tmp_path / "c"})
    assert list(corpus.train) == [b"a", b"b"]
    assert list(corpus.splits) == ["train", "test"]
    with pytest.raises(ValueError, match=r"'train'.*Received: "):
        Corpus({"valid": tmp_path / "a"})


def test_wrong_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing there. Received: path='.*none'"):
        Corpus(tmp_path / "none")
    (tmp_path / "notes.md").write_text("x\n")
    with pytest.raises(ValueError, match=r"no training text.*notes\.md.*Received: "):
        Corpus(tmp_path)
    (tmp_path / "train.txt").write_text("x\n")
    (tmp_path / "wiki.train.tokens").write_text("x\n")
    with pytest.raises(ValueError, match=r"several files.*Received: "):
        Corpus(tmp_path)
    for number in (1, 2):
        (tmp_path / "notes.md").write_text("x\n" * number)
        with pytest.raises(ValueError, match=rf"at least 3 lines, not {number}.*Received: "):
            Corpus(tmp_path / "notes.md")


@pytest.mark.skipif(DATA is None, reason="KERAS_DRILL_DATA does not name a folder of corpora")
@pytest.mark.parametrize(
    ("name", "vocabulary_size", "tokens"),
    [
        ("wikitext-2", 33_278, {"train": 2_088_628, "valid": 217_646, "test": 245_569}),
        ("ptb", 10_000, {"train": 929_589, "valid": 73_760, "test": 82_430}),
    ],
)
def test_published_counts(name, vocabulary_size, tokens):
    corpus = Corpus(Path(DATA) / name)
    tokenizer = WhitespaceTokenizer()
    vocabulary = Vocabulary.build(corpus.train, tokenizer)
    assert len(vocabulary) == vocabulary_size
    for split, lines in corpus.splits.items():
        assert len(EncodedText.encode(lines, tokenizer, vocabulary)) == tokens[split]
    assert sum(vocabulary.counts) == tokens["train"]


def test_no_part_of_a_cut_file_is_blank(tmp_path):
    lines = [f"line {i}" for i in range(40)]
    for place in (36, 38):  # the two lines that are the validation text, and those of the test text
        blank = [*lines[:place], "", " ", *lines[place + 2 :]]
        (tmp_path / "a").write_text("\n".join(blank) + "\n")
        corpus = Corpus(tmp_path / "a")
        parts = [list(corpus.train), list(corpus.valid), list(corpus.test)]
        assert [line.decode() for part in parts for line in part] == blank
        assert all(any(line.strip() for line in part) for part in parts)
    (tmp_path / "a").write_text("one\n\n\ntwo\n\n")
    with pytest.raises(ValueError, match=r"at least 3 lines with words, not 2. Received: "):
        Corpus(tmp_path / "a")


def test_a_folder_of_texts_under_any_names(tmp_path):
    (tmp_path / "more").mkdir()
    for name, lines in (("b.txt", 17), ("a.TXT", 11), ("more/c.txt", 13), ("notes.md", 5)):
        (tmp_path / name).write_text("".join(f"{name} {i}\n" for i in range(lines)))
    corpus = Corpus(tmp_path)
    lines = [line.decode() for part in (corpus.train, corpus.valid, corpus.test) for line in part]
    assert [line.split()[0] for line in lines] == ["a.TXT"] * 11 + ["b.txt"] * 17 + [
        "more/c.txt"
    ] * 13
    assert len(list(corpus.test)) == len(list(corpus.valid)) == 2
    (whole,) = Corpus(tmp_path, split=False).splits.values()
    assert len(list(whole)) == 41
    (tmp_path / "test.txt").write_text("x\n")
    with pytest.raises(ValueError, match="Found no training text in the folder"):
        Corpus(tmp_path)
