"""Splits that are cut by what lines say."""

import hashlib

import pytest

from keras_drill.data import TextLines
from keras_drill.data.content_splits import cut_by_content, text_splits


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_same_line_is_in_the_same_split_in_every_text(tmp_path):
    lines = [f"line {number}" for number in range(1009)]
    first = text_splits(write_lines(tmp_path / "a.txt", lines))
    second = text_splits(write_lines(tmp_path / "b.txt", ["other", *reversed(lines[500:])]))
    where = {line: name for name, part in first.items() for line in part}
    assert len(where) == 1009 and len(list(first["train"])) > 850
    assert all(where[line] == name for name, part in second.items() for line in part
               if line != b"other")  # fmt: skip
    assert all(len(list(part)) > 20 for part in first.values())


def test_the_split_of_a_line_is_that_of_its_hash(tmp_path):
    lines = [f"line {number}" for number in range(211)]
    expected = {"train": [], "valid": [], "test": []}
    for line in lines:
        share = int(hashlib.sha256(line.encode()).hexdigest()[:8], 16) / 0x100000000
        expected["train" if share < 0.9 else "valid" if share < 0.95 else "test"].append(line)
    for name, part in text_splits(write_lines(tmp_path / "a.txt", lines)).items():
        assert [line.decode() for line in part] == expected[name] != []


def test_empty_lines_go_with_the_line_before(tmp_path):
    lines = [line for number in range(300) for line in (f"line {number}", "")]
    for part in text_splits(write_lines(tmp_path / "a.txt", lines)).values():
        part = list(part)
        assert part[1::2] == [b""] * (len(part) // 2) and b"" not in part[::2]


def test_keys_decide(tmp_path):
    sources = TextLines(write_lines(tmp_path / "a.txt", range(500)))
    targets = TextLines(write_lines(tmp_path / "b.txt", ["", "b", "c", "d", "e"] * 100))
    parts = cut_by_content(sources, targets), cut_by_content(targets, targets)
    for name in parts[0]:
        source, target = (list(part[name]) for part in parts)
        assert len(source) == len(target) and len(target) % 100 == 0


def test_folders(tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    write_lines(given / "train.txt", ["a"])
    with_valid = write_lines(given / "valid.txt", ["b"])
    assert {name: list(part) for name, part in text_splits(given).items()} == {
        "train": [b"a"],
        "valid": [b"b"],
    }
    with_valid.unlink()
    write_lines(given / "train.txt", range(300))
    assert list(text_splits(given)) == ["train", "valid", "test"]  # training text alone is cut
    loose = tmp_path / "loose"
    loose.mkdir()
    for name in ("monday.txt", "tuesday.txt"):
        write_lines(loose / name, [f"{name} {number}" for number in range(300)])
    parts = text_splits(loose)
    assert sum(len(list(part)) for part in parts.values()) == 600
    write_lines(loose / "valid.txt", ["b"])  # whose training text is which?
    with pytest.raises(ValueError, match="Found no training text"):
        text_splits(loose)


def test_fingerprints_tell_parts_from_each_other(tmp_path):
    parts = text_splits(write_lines(tmp_path / "a.txt", range(300)))
    assert len({part.fingerprint() for part in parts.values()}) == 3
