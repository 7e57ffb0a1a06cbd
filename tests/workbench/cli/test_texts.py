"""Texts of every kind in, records of every form out."""

import csv
import gzip
import io
import json
import math
import os
import re
import sys

import pytest

from keras_drill.workbench.cli.texts import Text, TextReader, batches, escaped

BAD = b"the cat\r\n\xff a dog\n\na b\0c\n\xc3\xa4 dog"


@pytest.fixture
def standard_input(monkeypatch):
    def give(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


def contents(blocks):
    return [text.content for block in blocks for text in block]


def test_lines_are_read_and_bad_ones_are_named(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + BAD)
    reader = TextReader()
    lines = [text for block in reader.lines(str(tmp_path / "a.txt")) for text in block]
    assert [line.content for line in lines] == ["the cat", None, "", None, "ä dog"]
    assert [line.number for line in lines] == [1, 2, 3, 4, 5]
    err = capsys.readouterr().err
    assert "a.txt, line 2: byte 1, 0xff, is not UTF-8; this text is skipped\n" in err
    assert "a.txt, line 4: byte 4 is NUL" in err and reader.passed_over == 2


@pytest.mark.parametrize(
    "content, lines",
    [(b"", []), (b"\n", [""]), (b"a", ["a"]), (b"a\n", ["a"]), (b"\na", ["", "a"])],
)
def test_the_last_line_may_end_or_not(content, lines, standard_input):
    standard_input(content)
    assert contents(TextReader().lines("-")) == lines


def test_a_pipe_is_answered_before_it_ends(monkeypatch):
    read, write = os.pipe()
    with open(read) as stdin, open(write, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        blocks = TextReader().lines("-")
        pipe.write(b"one\ntwo\nthr")
        assert contents([next(blocks)]) == ["one", "two"]
        pipe.write(b"ee\n")
        assert contents([next(blocks)]) == ["three"]


def test_a_line_longer_than_any_buffer(standard_input):
    standard_input(b"a" * 1_000_003 + b"\nb")
    assert [len(content) for content in contents(TextReader().lines("-"))] == [1_000_003, 1]


def test_a_line_without_end_is_not_waited_for(run_main, folder):
    """As long as a model would take it; memory would be full before it ended."""
    status, _, said = run_main("score", folder / "tied", "--file", "/dev/zero")
    assert status == 1 and "a line must have at most 256 MiB" in said and said.count("\n") == 1


def test_arguments_are_utf8_whatever_the_locale(capsys):
    words = ["ä", "caf\udce9", "dog"]
    assert [text.content for text in TextReader().arguments(words)] == ["ä", None, "dog"]
    assert "text 2: byte 4, 0xe9, is not UTF-8" in capsys.readouterr().err


def test_batches_keep_the_order_and_have_few_bytes():
    texts = [Text(k, "a" * (40_000 if k == 70 else 3)) for k in range(1, 101)]
    cut = list(batches([texts, texts[:1]]))
    assert [text for batch in cut for text in batch] == [*texts, texts[0]]
    assert [len(batch) for batch in cut] == [64, 5, 1, 30, 1]


def test_closed_standard_input_is_one_message(folder, monkeypatch, run_main):
    monkeypatch.setattr(sys, "stdin", None)
    for command in ("score", "generate"):
        status, out, err = run_main(command, folder / "tied")
        assert (status, out) == (1, "") and err.count("\n") == 1
        assert "standard input is closed" in err


def test_scores_line_by_line_as_json(folder, run_main, standard_input):
    standard_input(BAD)
    status, out, err = run_main("score", folder / "tied", "--lines", "--format", "json")
    records = [json.loads(line) for line in out.splitlines()]
    assert status == 1 and err.count("skipped") == 2 and "all 3 texts: 7 words" in err
    assert [record["number"] for record in records] == [1, 3, 5]
    assert [record["text"] for record in records] == ["the cat", "", "ä dog"]
    assert records[2]["words"] == ["<unk>", "dog", "<eos>"]
    for record in records:
        assert len(record["log_probs"]) == record["num_words"]
        assert math.isclose(sum(record["log_probs"]), record["log_prob"], abs_tol=1e-4)
        perplexity = math.exp(-record["log_prob"] / record["num_words"])
        assert math.isclose(perplexity, record["perplexity"], rel_tol=1e-4)
    # A text has the same figures whatever stands beside it.
    status, out, _ = run_main("score", folder / "tied", "the cat", "--format", "json")
    assert status == 0
    assert math.isclose(json.loads(out)["log_prob"], records[0]["log_prob"], abs_tol=1e-4)


def test_scores_as_tsv_in_a_file(folder, tmp_path, run_main):
    output = tmp_path / "new" / "scores.tsv"
    words = ["score", "--format", "tsv", "--output", output, folder / "tied"]
    status, out, _ = run_main(*words, "a\tb\\\nc", "the cat")
    assert (status, out) == (0, "")
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert rows[0] == ["number", "log_prob", "num_words", "perplexity", "text"]
    assert [row[4] for row in rows[1:]] == ["a\\tb\\\\\\nc", "the cat"]
    assert all(len(row) == 5 and float(row[1]) < 0 for row in rows[1:])
    assert [path.name for path in output.parent.iterdir()] == ["scores.tsv"]


def test_what_fails_leaves_the_output_as_it_was(folder, tmp_path, run_main, standard_input):
    output = tmp_path / "scores.tsv"
    output.write_text("before")
    standard_input(b"")
    status, _, err = run_main("score", folder / "tied", "--lines", "--output", output)
    assert status == 1 and "standard input must contain at least one text to score" in err
    assert output.read_text() == "before" and list(tmp_path.iterdir()) == [output]


@pytest.mark.slow
def test_a_file_is_one_text_unless_its_lines_are(folder, tmp_path, run_main):
    (tmp_path / "a.txt").write_bytes(b"the cat\r\na dog\r\n")
    words = ["score", folder / "tied", "--total", "--file", tmp_path / "a.txt"]
    assert "total of 6 words" in run_main(*words)[1]
    lines = run_main(*words, "--lines")[1].splitlines()
    assert [line.split("  ")[-1][:18] for line in lines] == [
        "total of 3 words, ",
        "total of 3 words, ",
        "all 2 texts: 6 wor",
    ]


@pytest.mark.slow
def test_senses_as_json(folder, run_main):
    words = ["score", "--senses", folder / "kerbs", "--format", "json", "the cat"]
    record = json.loads(run_main(*words)[1])
    assert len(record["senses"]) == 3
    assert all(math.isclose(sum(one.values()), 1, abs_tol=1e-4) for one in record["senses"])


@pytest.mark.slow
def test_generated_texts_as_json(folder, tmp_path, run_main, standard_input):
    standard_input(b"the cat\n\xff\na dog\n")
    words = ["generate", folder / "tied", "--max-tokens", "3", "--seed", "5"]
    status, plain, err = run_main(*words)
    assert status == 1 and "line 2" in err
    assert plain.split("\n")[1] == "" and len(plain.splitlines()) == 3
    standard_input(b"the cat\n\xff\na dog\n")
    assert run_main(*words, "--format", "json", "--output", tmp_path / "a")[0] == 1
    records = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert [record["number"] for record in records] == [1, 3]
    assert [record["text"] for record in records] == plain.split("\n")[0:3:2]
    for record in records:
        assert record["text"].startswith(record["prompt"])
        assert len(record["words"]) == len(record["log_probs"]) <= 3


@pytest.mark.slow
def test_several_texts_for_a_prompt_do_not_depend_on_batches(
    folder, run_main, standard_input, monkeypatch
):
    prompts = ["the cat", "a dog", "the cat"]
    words = ["generate", folder / "tied", "-n", "3", "--seed", "5", "--max-tokens", "4"]
    status, plain, _ = run_main(*words, *prompts)
    lines = plain.splitlines()
    assert status == 0 and len(lines) == 9 and len(set(lines)) > 5
    monkeypatch.setattr("keras_drill.workbench.cli.generate._ROWS", 6)
    standard_input("\n".join(prompts).encode())
    records = [json.loads(line) for line in run_main(*words, "--format", "json")[1].splitlines()]
    assert [record["text"] for record in records] == lines
    assert [record["sample"] for record in records] == [1, 2, 3] * 3
    assert [record["number"] for record in records] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    # The first of several is what is drawn when there is one.
    assert run_main(*words[:2], *words[4:], *prompts)[1].splitlines() == lines[::3]


@pytest.mark.slow
def test_texts_end_before_stop_strings(folder, run_main):
    words = ["generate", folder / "tied", "a dog", "-n", "20", "--max-tokens", "9"]
    free = run_main(*words)[1].splitlines()
    stopped = run_main(*words, "--stop", "cat", "--stop=bird", "--stop=--")[1].splitlines()
    assert any("cat" in text for text in free) and any("bird" in text for text in free)
    assert not any("cat" in text or "bird" in text for text in stopped)
    cut = [re.split("cat|bird", text)[0].rstrip() for text in free]
    assert [text.rstrip() for text in stopped] == cut


def test_gzip_is_read(standard_input, tmp_path):
    content = gzip.compress("one\nzw\u00f6lf\n".encode(), mtime=0) + gzip.compress(b"three")
    standard_input(content)
    assert contents(TextReader().lines("-")) == ["one", "zw\u00f6lf", "three"]
    (tmp_path / "a.gz").write_bytes(content)
    assert contents(TextReader().lines(str(tmp_path / "a.gz"))) == ["one", "zw\u00f6lf", "three"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("one\ntwo\n".encode("utf-16"), "must be UTF-8, not UTF-16"),
        ("one\ntwo\n".encode("utf-16-be"), "must be UTF-8, not UTF-16"),
        (
            gzip.compress("one\n".encode("utf-16"), mtime=0),
            "must be UTF-8, not UTF-16",
        ),
        (gzip.compress(b"one\n" * 999, mtime=0)[:-9], "standard input: the gzip file is damaged"),
        (b"\x1f\x8b\0\0 no gzip", "standard input: the gzip file is damaged"),
        (b"one\rtwo\rthree\r", "standard input: lines must end with a line feed"),
    ],
)
def test_what_is_no_text_is_one_error(content, message, standard_input):
    standard_input(content)
    with pytest.raises(ValueError, match=message):
        list(TextReader().lines("-"))


def test_a_row_is_one_row_to_every_reader():
    texts = ["a\tb", "a\rb\nc\\n", "x\x85\u2028y\u2029\v\f\x1c", '"open', 'a "b" c', "", "ä 字"]
    table = "".join(f"{number}\t{escaped(text)}\n" for number, text in enumerate(texts))
    rows = [row.split("\t") for row in table.splitlines()]
    assert rows == list(csv.reader(io.StringIO(table, newline=""), delimiter="\t"))
    assert len(rows) == len(texts) == table.count("\n")
    # As strings of JSON have it, so they are undone.
    quoted = [re.sub(r'(?<!\\)"', r"\"", row[1]) for row in rows]
    assert [json.loads(f'"{text}"') for text in quoted] == texts
