"""Texts of any lengths in batches of any size: every token once, in its place, whoever reads it."""

import numpy as np
from hypothesis import strategies as st

from keras_drill.data import ContiguousBatches, EncodedText, SentenceBatches
from keras_drill.data.pair_batches import PairBatches
from tests.fuzz.damage import clear_errors
from tests.fuzz.fuzzed import fuzzed

END, START = 1, 2
LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=12)
SMALL = st.sampled_from([1, 2, 3, 5, 7, 0])
SEEDS = st.sampled_from([0, 7, 2**32 - 1, -1])


def text_of(lengths):
    """A text whose words are all different; each line with its end token."""
    first = 3 + np.cumsum([0, *lengths])
    lines = [
        [*range(start, start + size), END] for start, size in zip(first, lengths, strict=False)
    ]
    return EncodedText(np.concatenate(lines), [len(line) for line in lines])


def written(batches, epoch, first_batch=0):
    return [tuple(np.array(x) for x in batch) for batch in batches.dataset(epoch, first_batch)]


@fuzzed(
    10,
    lengths=LENGTHS,
    batch_size=SMALL,
    sequence_length=SMALL,
    variable_length=st.booleans(),
    padding=st.booleans(),
    seed=SEEDS,
    epoch=st.integers(0, 3),
)
def test_contiguous_batches(folder, lengths, epoch, **options):
    ids = text_of(lengths).ids
    with clear_errors(ValueError):
        batches = ContiguousBatches(ids, **options)
        found = written(batches, epoch)
        assert len(found) == batches.num_batches
        targets = np.concatenate([batch[1] for batch in found], 1)
        weights = np.concatenate([batch[2] for batch in found], 1) if options["padding"] else 1
        counted = targets[np.broadcast_to(weights, targets.shape) == 1]
        assert counted.tolist() == ids[: batches.num_targets].tolist()
        tokens = np.concatenate([batch[0] for batch in found], 1)
        assert (tokens[:, 1:] == targets[:, :-1]).all()
        later = written(batches, epoch, batches.num_batches // 2)
        assert all(
            np.array_equal(a, b)
            for one, other in zip(later, found[-len(later) :], strict=True)
            for a, b in zip(one, other, strict=True)
        )


@fuzzed(
    12,
    lengths=LENGTHS,
    batch_size=SMALL,
    max_length=st.none() | SMALL,
    length_multiple=SMALL,
    shuffle=st.booleans(),
    bucket_batches=SMALL,
    fill_last_batch=st.booleans(),
    seed=SEEDS,
)
def test_sentence_batches(folder, lengths, **options):
    with clear_errors(ValueError):
        batches = SentenceBatches(text_of(lengths), end_id=END, start_id=START, **options)
        sentences = []
        for tokens, targets, weights in written(batches, 0):
            for row, words, weight in zip(tokens, targets, weights, strict=True):
                count = int(weight.sum())
                assert (weight[:count] == 1).all() and (words[count:] == 0).all()
                if count:
                    assert row[0] == START and (row[1:count] == words[: count - 1]).all()
                    sentences.append(words[:count].tolist())
        most = options["max_length"] or 99
        lines = np.split(text_of(lengths).ids, np.cumsum([size + 1 for size in lengths])[:-1])
        expected = [line[:most].tolist() for line in lines if len(line) > 1]
        assert sorted(sentences) == sorted(expected)
        assert batches.num_targets == sum(map(len, expected))


@fuzzed(
    8,
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12),
    size=st.tuples(SMALL, st.none()) | st.tuples(st.none(), st.integers(-1, 40)),
    max_length=st.none() | SMALL,
    shuffle=st.booleans(),
    drop_empty=st.booleans(),
)
def test_pair_batches(folder, pairs, size, **options):
    source, target = (text_of(lengths) for lengths in zip(*pairs, strict=True))
    options["batch_size"], options["batch_tokens"] = size
    with clear_errors(ValueError):
        batches = PairBatches(source, target, pad_id=0, start_id=START, end_id=END, **options)
        found = list(batches.dataset().as_numpy_iterator())
        assert len(found) == batches.num_batches
        assert sum(int(weights.sum()) for *_, weights in found) == batches.num_targets
        for inputs, labels, weights in found:
            assert len(inputs["source"]) == len(labels) > 0
            assert ((labels != 0) == (weights == 1)).all()
            assert (inputs["target"][:, 0] == START).all()
