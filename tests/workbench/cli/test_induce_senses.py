import re

import pytest

from tests.workbench.sense_induction.tiny_encoder import save_preset, text


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A preset, a text, and a folder with induced senses."""
    folder = tmp_path_factory.mktemp("induced")
    save_preset(folder / "tiny")
    (folder / "text.txt").write_text("\n".join(text()[0]))
    return folder


def command(place, run, *words):
    return ["induce-senses", *words, "--data", place / "text.txt", "--encoder", place / "tiny",
            "--run", place / run, "--window", 7, "--others", 5, "--steps", 30]  # fmt: skip


@pytest.mark.slow
def test_words_to_page(place, run_main):
    status, out, err = run_main(*command(place, "run", "bank"), "--senses", 2)
    assert status == 0, err
    assert re.search(r"contexts read: (\d+) of \1$", out, re.M)
    assert "bank: 160 times" in out and "occurrences are from text.txt" in out
    contexts = re.findall(r"^ +sense (\d+)  [01]\.\d\d  (.*) \[bank\] near ", out, re.M)
    assert len(contexts) == 6
    kinds = {sense: {"water" in c or "fish" in c or "boat" in c or "mud" in c for s, c in contexts
                     if s == sense} for sense, _ in contexts}  # fmt: skip
    assert len(kinds) == 2
    page = (place / "run" / "senses.html").read_text()
    assert "The word <bdi>bank</bdi>" in page and "KerBS on contexts of tiny" in page

    # The folder is one of `keras-drill senses`, with other numbers of words and contexts.
    (place / "run" / "senses.html").unlink()
    status, out, err = run_main("senses", place / "run", "--contexts", 1, "--nearest", 2)
    assert status == 0 and len(re.findall(r"\[bank\]", out)) == 2, err
    assert (place / "run" / "senses.html").exists()
    status, _, err = run_main("senses", place / "run", "pool")
    assert status == 1 and "'pool' has no induced senses; choose among bank" in err
    status, _, err = run_main("senses", place / "run", "--data", place / "text.txt")
    assert status == 1 and "--data cannot be used with" in err

    # Once more: contexts are not read by the encoder again, and the folder is replaced.
    before = sorted((place / "run" / "contexts").iterdir())
    status, out, err = run_main(*command(place, "run", "bank"), "--senses", 3)
    assert status == 0 and sorted((place / "run" / "contexts").iterdir()) == before, err
    assert len(re.findall(r"^ +\d+ +\d+ +\d+ %", out, re.M)) == 3


@pytest.mark.parametrize(
    "words, options, message",
    [
        (["define"], [], "knows as one token: 'define', which it splits into 'def'"),
        (["zebra"], [], "'zebra', which it splits into '[UNK]'"),
        (["pool"], [], "'pool' occurs 0 times in the text, too few for 3 senses"),
        (["bank"], ["--senses", "161"], "'bank' occurs 160 times in the text, too few for 161"),
        (["bank"], ["--encoder", "bert_nonsense_en"], "--encoder bert_nonsense_en: "),
        (["bank"], ["--window", "33"], "Received: window=33, an encoder for length 67"),
    ],
)
def test_mistakes_get_one_message(words, options, message, place, run_main):
    status, _, err = run_main(*command(place, "mistakes", *words), *options)
    assert status == 1 and message in err and "Traceback" not in err
    assert err.startswith("keras-drill: error: ")


def test_a_preset_without_weights(place, tmp_path, run_main):
    preset = save_preset(tmp_path / "bare")
    (preset / "model.weights.h5").unlink()
    status, _, err = run_main(*command(place, "bare", "bank"), "--encoder", preset)
    assert status == 1 and "must have weights, one of model.weights.h5" in err


def test_folders_of_other_files_are_left_alone(place, tmp_path, run_main):
    (tmp_path / "diary.txt").write_text("mine")
    status, _, err = run_main(*command(place, "x", "bank"), "--run", tmp_path)
    assert status == 2 and "holds files but no induced senses" in err
