import gzip
from collections import Counter

import pytest

from keras_drill.data import ParallelCorpus


def write(folder, files):
    for name, lines in files.items():
        content = "".join(f"{line}\n" for line in lines).encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


PAIRS = {
    "train": [("eins", "one"), ("", ""), ("zwei  ", "two\u2028lines")],
    "valid": [("drei", "three")],
    "test": [("vier", "four")],
}
EXPECTED = {
    name: [tuple(side.encode() for side in pair) for pair in pairs] for name, pairs in PAIRS.items()
}


def pairs_of(corpus):
    return {name: list(text) for name, text in corpus.splits.items()}


def test_two_files_a_split(tmp_path):
    names = {"train": "train.{}", "valid": "val.{}.gz", "test": "test_2016_flickr.{}"}
    for split, name in names.items():
        for column, language in enumerate(("de", "en")):
            write(tmp_path, {name.format(language): [pair[column] for pair in PAIRS[split]]})
    write(tmp_path, {"train.fr": ["autre"], "README.md": ["# About"]})
    assert pairs_of(ParallelCorpus(tmp_path, "de", "en")) == EXPECTED
    backwards = pairs_of(ParallelCorpus(tmp_path, "en", "de"))
    assert backwards["test"] == [(b"four", b"vier")]
    files = {"train": (tmp_path / "train.de", tmp_path / "train.en")}
    assert pairs_of(ParallelCorpus(files)) == {"train": EXPECTED["train"]}


def test_one_file_of_two_columns_a_split(tmp_path):
    for split, pairs in PAIRS.items():
        write(tmp_path, {f"{split}.tsv": ["\t".join((*pair, "CC-BY")) for pair in pairs]})
    assert pairs_of(ParallelCorpus(tmp_path)) == EXPECTED


def test_a_cut_file_has_no_target_in_two_splits(tmp_path):
    lines = [(f"Satz {number}", f"sentence {number % 701}") for number in range(2003)]
    write(tmp_path, {"all.tsv": ["\t".join(pair) for pair in lines]})
    write(tmp_path, {"all.de": [s for s, _ in lines], "all.en": [t for _, t in lines]})
    found = pairs_of(ParallelCorpus(tmp_path / "all.tsv"))
    assert found == pairs_of(ParallelCorpus([tmp_path / "all.de", tmp_path / "all.en"]))
    everything = [pair for pairs in found.values() for pair in pairs]
    assert Counter(everything) == Counter((s.encode(), t.encode()) for s, t in lines)
    targets = [{target for _, target in pairs} for pairs in found.values()]
    assert not (targets[0] & targets[1] or targets[0] & targets[2] or targets[1] & targets[2])
    assert 0.85 < len(found["train"]) / len(lines) < 0.95
    assert min(len(found["valid"]), len(found["test"])) > 40
    texts = ParallelCorpus(tmp_path / "all.tsv").splits.values()
    prints = {side.fingerprint() for text in texts for side in (text.source, text.target)}
    assert len(prints) == 6


def test_different_numbers_of_lines(tmp_path):
    write(tmp_path, {"train.de": ["a", "b", "c"], "train.en": ["a", "b"]})
    with pytest.raises(ValueError, match=r"line 3 of \S*train.de .* no counterpart.*3 lines in"):
        ParallelCorpus(tmp_path, "de", "en")
    with pytest.raises(ValueError, match=r"line 3 of \S*train.de"):
        ParallelCorpus(tmp_path, "en", "de")


def test_a_line_of_one_column(tmp_path):
    write(tmp_path, {"train.tsv": ["a\tb", "alone"]})
    with pytest.raises(ValueError, match=r"a tab and a target in line 2 of \S*train.tsv.*'alone'"):
        list(ParallelCorpus(tmp_path).splits["train"])


@pytest.mark.parametrize("line", ["a\tb\tCC\tBY", "a\tb", "a", ""])
def test_a_tab_inside_a_column_is_found(tmp_path, line):
    write(tmp_path, {"train.tsv": ["a\tb\tCC-BY"] * 5000 + [line]})
    message = r"line 5001 of \S*train.tsv, and as many columns as in line 1, which has 3. Received"
    for side in ("source", "target"):
        with pytest.raises(ValueError, match=message):
            list(getattr(ParallelCorpus(tmp_path).splits["train"], side))


HOSTILE = {
    "form feed": "a\x0cb",
    "next line": "a\x85b",
    "line separator": "a\u2028b\u2029c",
    "file separators": "a\x1c\x1d\x1eb",
    "vertical tab": "a\x0bb",
    "lone carriage return": "a\rb",
    "no-break space": "\u00a0a\u00a0",
    "byte-order mark inside": "a\ufeffb",
    "spaces alone": "   ",
    "empty": "",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last_end", [True, False])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_only_line_feeds_end_lines(tmp_path, end, last_end, start):
    lines = [*HOSTILE.values(), "last"]
    for name, column in {"train.de": 0, "train.en": 1, "all.tsv": 2}.items():
        pairs = [(line, f"{number}", f"{line}\t{number}") for number, line in enumerate(lines)]
        content = start + end.join(pair[column] for pair in pairs) + end * last_end
        (tmp_path / name).write_bytes(content.encode())
    expected = [(line.encode(), str(number).encode()) for number, line in enumerate(lines)]
    assert list(ParallelCorpus(tmp_path, "de", "en").splits["train"]) == expected
    assert list(ParallelCorpus({"train": tmp_path / "all.tsv"}).splits["train"]) == expected


def test_bad_files_are_named(tmp_path):
    good = "".join(f"{number}\n" for number in range(3000)).encode()
    write(tmp_path, {"train.en": range(3000)})
    compressed = gzip.compress(good)
    contents = {
        "train.de.gz": (
            compressed[: len(compressed) // 2],
            r"incomplete.*Received: \S*train.de.gz",
        ),
        "train.de": (
            good + b"caf\xe9\n",
            r"0xe9 in line 3001.*WINDOWS-1252.*Received: \S*train.de",
        ),
    }
    for name, (content, message) in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            ParallelCorpus(tmp_path, "de", "en")
        (tmp_path / name).unlink()
    (tmp_path / "train.de").write_bytes(good[:5000] + b"\0" + good[5000:])
    with pytest.raises(ValueError, match=r"NUL byte in line \d+.*Received: \S*train.de"):
        ParallelCorpus(tmp_path, "de", "en")


def test_missing_and_ambiguous_files(tmp_path):
    write(tmp_path, {"train.de": ["a"]})
    with pytest.raises(FileNotFoundError, match=r"contain 'train.en', .* \['train.de'\]"):
        ParallelCorpus(tmp_path, "de", "en")
    with pytest.raises(
        FileNotFoundError, match=r"expected 'train.tsv'. Entries .*: \['train.de'\]"
    ):
        ParallelCorpus(tmp_path)
    with pytest.raises(FileNotFoundError, match="No such text file"):
        ParallelCorpus(tmp_path / "absent.tsv")
    write(tmp_path, {"training.de": ["a"], "train.en": ["a"]})
    with pytest.raises(ValueError, match="several files that may be"):
        ParallelCorpus(tmp_path, "de", "en")
    with pytest.raises(ValueError, match="must be two languages"):
        ParallelCorpus(tmp_path, "de")
    with pytest.raises(ValueError, match="must have the key 'train'"):
        ParallelCorpus({"valid": tmp_path / "train.de"})
    with pytest.raises(ValueError, match="Expected one file with tab-separated sources"):
        ParallelCorpus([tmp_path / "train.de"] * 3)


def test_bad_bytes_name_file_and_line(tmp_path):
    (tmp_path / "train.tsv").write_bytes(b"a\tb\nc\t\xff\n")
    with pytest.raises(ValueError, match=r"byte 0xff in line 2"):
        list(ParallelCorpus(tmp_path).splits["train"])


def test_columns_need_no_languages(tmp_path):
    write(tmp_path, {"train.tsv": ["ein Haus\ta house"], "valid.tsv": ["a\tb"]})
    for languages in ({}, {"source": "de", "target": "en"}):
        splits = ParallelCorpus(tmp_path, **languages).splits
        assert list(splits) == ["train", "valid"]
        assert list(splits["train"]) == [(b"ein Haus", b"a house")]
