"""Words that are numbered as they are met are those of a count by hand."""

import collections

import numpy as np
import tensorflow as tf

from keras_drill.data import EncodedText, TextLines, Vocabulary, WhitespaceTokenizer
from keras_drill.data.word_numbers import WordNumbers


def test_numbers_and_counts():
    random = np.random.default_rng(5)
    lines = [[f"w{i}" for i in random.zipf(1.5, n) % 997] for n in random.integers(0, 31, 500)]
    numbers = WordNumbers()
    for start in range(0, 500, 101):
        numbers.add(tf.ragged.constant(lines[start : start + 101], dtype=tf.string))
    counts = collections.Counter(word for line in lines for word in line)
    assert [word.decode() for word in numbers.words] == list(counts)  # as they were met
    assert numbers.counts.tolist() == list(counts.values()) and numbers.num_lines == 500
    assert not numbers.kept


def test_a_text_is_numbered_and_encoded_in_one_reading(tmp_path):
    path = tmp_path / "text.txt"
    lines = [" ".join(f"w{i % 13}" for i in range(n)) for n in (3, 0, 1, 40, 2)] * 2000
    path.write_text("".join(f"{line}\n" for line in [*lines, "<unk> rare"]))
    numbers = WordNumbers(keep_in=tmp_path)
    tokenizer = WhitespaceTokenizer()
    vocabulary = Vocabulary.build(TextLines(path), tokenizer, min_count=2, numbers=numbers)
    assert numbers.kept and [file.name for file in tmp_path.iterdir()] == ["text.txt"]
    expected = EncodedText.encode(TextLines(path), tokenizer, vocabulary)
    for _ in range(2):
        ids, lengths = zip(*numbers.encoded(vocabulary), strict=True)
        assert len(ids) > 1
        np.testing.assert_array_equal(np.concatenate(ids), expected.ids)
        np.testing.assert_array_equal(np.concatenate(lengths), expected.line_lengths)
    numbers.close()
    same = Vocabulary.build(TextLines(path), tokenizer, min_count=2)
    assert same.tokens == vocabulary.tokens and same.counts == vocabulary.counts
