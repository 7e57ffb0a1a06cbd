import gzip

import pytest

from keras_drill.data import EncodedText, TextLines, Vocabulary, WhitespaceTokenizer


def write(path, content):
    path.write_bytes(content)
    return path


def test_lines_of_several_files(tmp_path):
    first = write(tmp_path / "a", b"one\n\ntwo")
    second = write(tmp_path / "b", "\ufeffthree \u2028 still\r\n\n".encode())
    lines = TextLines([first, second])
    assert list(lines) == [b"one", b"", b"two", "three \u2028 still".encode(), b""]
    assert list(lines) == list(lines)


@pytest.mark.parametrize("chunk", [13, 1 << 20])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_ranges_and_blocks(tmp_path, size, chunk, monkeypatch):
    monkeypatch.setattr("keras_drill.data.text_lines._CHUNK", chunk)
    files = [
        write(tmp_path / f"{k}", "".join(f"{k} {i}\n" for i in range(11)).encode())
        for k in range(3)
    ]
    everything = list(TextLines(files))
    for first in (0, 5, 11, 12, 32):
        for number in (None, 1, 7, 13):
            chosen = everything[first : None if number is None else first + number]
            blocks = list(TextLines(files, first, number).blocks(size))
            assert [line for block in blocks for line in block] == chosen
            assert all(len(block) == size for block in blocks[:-1])


def test_gzip_whatever_the_name(tmp_path):
    path = write(tmp_path / "text.txt", gzip.compress("ä\nb\n".encode(), mtime=0))
    assert list(TextLines(path)) == ["ä".encode(), b"b"]


def test_fingerprint_follows_content_and_range(tmp_path):
    path = write(tmp_path / "a", b"one\ntwo\n")
    prints = {TextLines(path).fingerprint(), TextLines(path, 1).fingerprint()}
    copy = write(tmp_path / "b", b"one\ntwo\n")
    assert TextLines(copy).fingerprint() in prints
    write(path, b"one\ntwo \n")
    assert TextLines(path).fingerprint() not in prints


def test_long_file_places_the_error(tmp_path):
    good = b"a line of text\n" * 100_000
    path = write(tmp_path / "latin", good + b"caf\xe9 au lait\n")
    with pytest.raises(ValueError, match=r"line 100001, at byte 1500003, .*Received: .*latin"):
        list(TextLines(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"fine\nb\0d\n", r"binary.*line 2, at byte 6"),
        ("text\n".encode("utf-16"), "UTF-16"),
        (b"fine\n\xff\xfe\n", r"0xff in line 2, at byte 5"),
        (gzip.compress(b"text\n" * 1000, mtime=0)[:-9], "damaged or incomplete"),
        (gzip.compress(b"", mtime=0), "empty"),
        (b"\x1f\x8bnonsense", "damaged or incomplete"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = write(tmp_path / "bad.txt", content)
    with pytest.raises(ValueError, match=message) as caught:
        list(TextLines(path))
    assert str(caught.value).endswith(f"Received: {str(path)!r}")


def test_errors_about_a_text_say_which_lines_of_which_file(tmp_path):
    path = write(tmp_path / "a.txt", b"one\n\n\n")
    blank = TextLines(path, first_line=1, num_lines=1)
    with pytest.raises(ValueError, match=r"only empty lines\. Received: line 2 of .*a\.txt$"):
        EncodedText.encode(blank, WhitespaceTokenizer(), Vocabulary(["<unk>", "<eos>"]))
    with pytest.raises(ValueError, match=r"only white space\. Received: lines 2 to 3 of .*a\.txt$"):
        Vocabulary.build(TextLines(path, 1, 2), WhitespaceTokenizer())


def test_bad_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Received: .*nothing"):
        TextLines(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match="Received: "):
        TextLines(tmp_path)
    (tmp_path / "a").write_text("a")
    with pytest.raises(ValueError, match=r"negative. Received: first_line=-1"):
        TextLines(tmp_path / "a", -1)
    with pytest.raises(ValueError, match=r"`files`.*Received: files=\[\]"):
        TextLines([])


@pytest.mark.parametrize("content", [b"one\rtwo\rthree", b"one\rtwo\r\n", b"a\rb\nc\rd\n"])
def test_carriage_returns_alone_end_no_lines(tmp_path, content):
    with pytest.raises(ValueError, match=r"carriage return alone, as on old Macs.*Received: .*mac"):
        list(TextLines(write(tmp_path / "mac", content)))


def test_a_stray_carriage_return_is_text(tmp_path):
    assert list(TextLines(write(tmp_path / "a", b"a\rb\r\nc\n"))) == [b"a\rb", b"c"]
