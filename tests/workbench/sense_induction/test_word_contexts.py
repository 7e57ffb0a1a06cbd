from collections import Counter

import numpy as np
import pytest

from keras_drill.workbench.sense_induction import find_contexts


def test_all_occurrences_are_found_as_whole_words():
    lines = ["Bank, banks; the BANK", "", "embankment bank-bank"]
    found = find_contexts(lines, ["bank", "the"], most=9)
    assert [c.word for c in found["bank"]] == ["Bank", "BANK", "bank", "bank"]
    assert all("".join(c) in lines for some in found.values() for c in some)
    assert [c.before for c in found["the"]] == ["Bank, banks; "]


def test_many_contexts_are_drawn_evenly():
    lines = [f"{number} bank" for number in range(20)]
    counts = Counter(
        context.before
        for seed in range(400)
        for context in find_contexts(lines, ["bank"], 5, seed)["bank"]
    )
    assert sum(counts.values()) == 2000 and len(counts) == 20
    assert np.abs(np.array(list(counts.values())) - 100).max() < 5 * np.sqrt(75)  # binomial
    again = [find_contexts(lines, words, 5, seed=3) for words in (["bank"], ["a", "bank"])]
    assert again[0]["bank"] == again[1]["bank"]


@pytest.mark.parametrize("words", [["two words"], ["a."], ["bank", "Bank"], [""]])
def test_what_is_no_word_is_refused(words):
    with pytest.raises(ValueError, match=r"`words` must be a list of different words.*Received"):
        find_contexts(["bank"], words, 3)
