"""Which words `keras-drill senses` shows when none are named."""

from types import SimpleNamespace

import numpy as np

from keras_drill.workbench.analysis import WordSenses
from keras_drill.workbench.training.choose_words import choose_words

#         id:  0       1        2      3    4       5       6       7       8      9
TOKENS = ["<unk>", "<eos>", "the", ".", "said", "bank", "spring", "seal", "rare", "plain"]
COUNTS = [900, 900, 500, 400, 60, 50, 40, 30, 20, 25]
SEEN = [90, 90, 90, 80, 61, 31, 29, 23, 2, 25]
SENSES = np.array([1, 1, 4, 4, 2, 3, 2, 2, 4, 1])
CERTAINTY = {2: 1.0, 3: 1.0, 4: 0.5, 5: 0.7, 6: 0.9, 7: 0.6, 9: 1.0}  # of the sense in a context


def study(word):
    certainty = CERTAINTY[word] if SENSES[word] > 1 else 1.0
    even = np.array([[certainty, 1 - certainty], [1 - certainty, certainty]])
    none = np.empty(0)
    return WordSenses(word, none, none, none, even if SENSES[word] > 1 else np.ones((2, 1)))


def chosen(number, counts=COUNTS):
    words = SimpleNamespace(tokens=TOKENS, counts=counts, special_ids=(0, 1))
    shown = SimpleNamespace(
        ids=np.repeat(np.arange(len(TOKENS)), SEEN), read=lambda ids: [study(word) for word in ids]
    )
    found = choose_words(SimpleNamespace(vocabulary=words), shown, SENSES, number)
    return [TOKENS[senses.word] for senses in found]


def test_content_words_come_first_by_how_much_their_sense_depends_on_the_context():
    assert chosen(3) == ["spring", "bank", "seal"]
    assert chosen(4) == ["spring", "bank", "seal", "said"]


def test_others_follow_where_there_are_too_few():
    """The most frequent words, punctuation, and last those of one sense; never what is too rare."""
    assert chosen(9) == ["spring", "bank", "seal", "said", "the", ".", "plain"]


def test_without_counts_those_of_the_text_stand_in():
    assert chosen(3, counts=None)[:2] == ["spring", "bank"]
