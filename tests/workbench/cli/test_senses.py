import re

import pytest

from keras_drill.workbench.cli.main import main


def test_chosen_words(folder, capsys):
    capsys.readouterr()
    words = ["senses", str(folder / "kerbs"), "cat", "sees", "--nearest", "2", "--contexts", "1"]
    assert main([*words, "--split", "valid"]) == 0
    out = capsys.readouterr().out
    assert "senses per word" in out and "tokens of the valid text" in out
    assert re.search(r"^cat: \d+ times$", out, re.M)
    lines = out[out.index("cat:") : out.index("sees:")].splitlines()
    senses = [line for line in lines if re.match(r" +\d +\d+ +\d+ % +-?\d+\.\d{3}  \S+ \S+$", line)]
    assert senses and "<unk>" not in lines[0]
    shares = [int(re.search(r"(\d+) %", line)[1]) for line in senses]
    assert abs(sum(shares) - 100) <= len(shares)
    contexts = [line for line in lines if "[cat]" in line]
    assert contexts and all(
        re.match(r" +sense \d  [01]\.\d\d  .* \[cat\] ", line) for line in contexts
    )
    page = (folder / "kerbs" / "senses.html").read_text()
    assert "The word <bdi>cat</bdi>" in page and "The word <bdi>sees</bdi>" in page


@pytest.mark.slow
def test_contexts_are_those_of_the_text(folder, capsys):
    """The batches read the text in rows: what is shown must stand in it as it is shown."""
    capsys.readouterr()
    assert main(["senses", str(folder / "kerbs"), "old", "--contexts", "50"]) == 0
    text = " ".join((folder / "text" / "train.txt").read_text().replace(".\n", " . <eos> ").split())
    contexts = re.findall(r"^ +sense \d  [01]\.\d\d  (.*)$", capsys.readouterr().out, re.M)
    assert len(contexts) > 20
    for context in contexts:
        assert context.replace("[old]", "old").strip() in text


@pytest.mark.slow
def test_words_are_chosen_when_none_are_given(folder, tmp_path, capsys):
    page = tmp_path / "s.html"
    assert main(["senses", str(folder / "kerbs"), "--report", str(page)]) == 0
    shown = re.findall(r"^(\S+): \d+ times$", capsys.readouterr().out, re.M)
    assert len(shown) == 4 and all(word.isalpha() for word in shown)
    assert page.read_text().count("The word ") == 4


def test_a_given_file_is_read_as_a_whole(folder, tmp_path, capsys):
    own = folder / "kerbs" / "senses.html"
    own.unlink(missing_ok=True)
    (tmp_path / "test.txt").write_text("the cat sees a dog.\n" * 31)
    given = ["senses", str(folder / "kerbs"), "cat", "--data", str(tmp_path / "test.txt")]
    assert main(given) == 0
    out = capsys.readouterr().out
    text = f"the 217 tokens of the test.txt text (31 lines of {tmp_path}/test.txt)"
    assert text in out and "cat: 31 times" in out
    page = folder / "kerbs" / "senses-test.txt.html"
    assert text in page.read_text() and str(page) in out and not own.exists()


def _one_sense(folder, tmp_path):
    return ["senses", str(folder / "tied")], "whose head.kind is 'tied'"


def _unknown_word(folder, tmp_path):
    return ["senses", str(folder / "kerbs"), "catt"], "'catt' is not in the vocabulary"


def _rare_word(folder, tmp_path):
    (tmp_path / "a.txt").write_text("the cat sees a dog.\n" * 2 + "a dog hears a dog.\n" * 40)
    words = ["senses", str(folder / "kerbs"), "cat", "--data", str(tmp_path / "a.txt")]
    return words, "'cat' occurs 2 times in the"


def _missing_split(folder, tmp_path):
    (tmp_path / "train.txt").write_text("the cat sees a dog.\n" * 20)
    words = ["senses", str(folder / "kerbs"), "--data", str(tmp_path), "--split", "valid"]
    return words, "has no valid text; it has train"


@pytest.mark.parametrize("spoil", [_one_sense, _unknown_word, _rare_word, _missing_split])
def test_mistakes_get_one_message(spoil, folder, tmp_path, capsys):
    words, message = spoil(folder, tmp_path)
    capsys.readouterr()
    assert main(words) == 1
    err = capsys.readouterr().err
    assert err.startswith("keras-drill: error: ") and message in err and "Traceback" not in err


@pytest.mark.parametrize("option", ["tokens", "nearest", "contexts"])
def test_wrong_usage_gets_one_message(option, capsys):
    assert main(["senses", "a", f"--{option}", "0"]) == 2
    assert f"--{option} must be at least 1; see" in capsys.readouterr().err
