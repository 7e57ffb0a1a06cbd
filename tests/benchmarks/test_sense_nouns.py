"""Which nouns the benchmark of sense induction can measure methods on."""

import pytest

from benchmarks.sense_induction.data import read_nouns


def _write(folder, name, train, test):
    (folder / name).mkdir()
    for split, gold in (("train", train), ("test", test)):
        contexts = "".join(f"1\tthe {name} {number}\n" for number in range(len(gold)))
        (folder / name / f"{split}.data.txt").write_text(contexts)
        (folder / name / f"{split}.gold.txt").write_text("".join(f"{sense}\n" for sense in gold))


def test_nouns_of_one_sense_are_skipped_with_a_reason(tmp_path, capsys):
    _write(tmp_path, "club", [0, 0, 0], [0, 0])
    _write(tmp_path, "seal", [0, 1, 2], [1, 1])
    with pytest.raises(ValueError, match=r"two gold senses .* Received: "):
        read_nouns(tmp_path)
    assert "club is skipped: its training and test contexts have" in capsys.readouterr().err
    _write(tmp_path, "square", [0, 1, 1], [1, 0])
    (noun,) = read_nouns(tmp_path)
    assert (noun.name, noun.kind, noun.training) == ("square", "held back", 3)
    assert "seal is skipped: its test contexts have one gold sense" in capsys.readouterr().err
