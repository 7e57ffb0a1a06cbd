import numpy as np
import pytest

from keras_drill.data import EncodedText, PairBatches
from keras_drill.data.pair_batches import padded_length

END, START, PAD = 1, 2, 0


def make_text(num_lines, seed, longest=150):
    """Lines of 0 to `longest` - 1 tokens, every token of the text different."""
    lengths = np.minimum(np.random.RandomState(seed).geometric(0.06, num_lines), longest)
    ids = np.arange(lengths.sum()) + 3
    ids[np.cumsum(lengths) - 1] = END
    return EncodedText(ids, lengths)


def lines(text):
    return [tuple(x) for x in np.split(text.ids, np.cumsum(text.line_lengths)[:-1])]


def make(num_lines=211, **options):
    source, target = make_text(num_lines, 1), make_text(num_lines, 2)
    return PairBatches(source, target, END, START, **options), source, target


def elements_of(dataset):
    return [
        (inputs["source"].numpy(), inputs["target"].numpy(), labels.numpy(), weights.numpy())
        for inputs, labels, weights in dataset
    ]


def pairs_of(elements):
    found = []
    for source, _, labels, weights in elements:
        for s, l, w in zip(source, labels, weights, strict=True):
            found.append((tuple(s[s != PAD]), tuple(l[: int(w.sum())])))
    return found


OPTIONS = [
    {"batch_size": 7},
    {"batch_tokens": 512},
    {"batch_tokens": 512, "shuffle": False},
    {"batch_tokens": 50, "seed": 3},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_pair_comes_once_and_is_well_formed(options):
    batches, source, target = make(**options)
    elements = elements_of(batches.dataset(epoch=3))
    assert len(elements) == batches.num_batches == batches.dataset().cardinality()
    for s, t, labels, weights in elements:
        assert t.shape == labels.shape == weights.shape
        for row in range(len(s)):
            length = int(weights[row].sum())
            assert (weights[row, :length] == 1).all()
            assert t[row, 0] == START and labels[row, length - 1] == END
            np.testing.assert_array_equal(t[row, 1:length], labels[row, : length - 1])
            assert (t[row, length:] == PAD).all() and (labels[row, length:] == PAD).all()
        for side in (s, t):
            width = max((row != PAD).sum() for row in side)
            assert side.shape[1] == padded_length(width)
        if "batch_tokens" in options and len(s) > 1:
            assert len(s) * max(s.shape[1], t.shape[1]) <= options["batch_tokens"]
        if "batch_size" in options:
            assert len(s) <= options["batch_size"]
    assert sorted(pairs_of(elements)) == sorted(zip(lines(source), lines(target), strict=True))
    assert batches.num_targets == sum(weights.sum() for *_, weights in elements)


def test_unshuffled_pairs_come_in_the_order_that_is_told():
    batches, source, target = make(batch_tokens=512, shuffle=False)
    expected = [(lines(source)[i], lines(target)[i]) for i in batches.order]
    assert pairs_of(elements_of(batches.dataset())) == expected


def test_epochs_differ_but_for_their_shapes_and_can_be_entered_anywhere():
    batches, *_ = make(batch_tokens=512)
    first, again, second = (elements_of(batches.dataset(epoch=e)) for e in (0, 0, 1))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
    assert pairs_of(first) != pairs_of(second)
    shapes = [sorted((s.shape, t.shape) for s, t, *_ in x) for x in (first, second)]
    assert shapes[0] == shapes[1]
    rest = elements_of(batches.dataset(epoch=0, first_batch=3, epochs=2))
    assert len(rest) == 2 * batches.num_batches - 3
    assert pairs_of(rest) == pairs_of(first[3:]) + pairs_of(second)
    assert list(batches.dataset(first_batch=batches.num_batches)) == []


def test_long_sides_are_cut_and_counted():
    batches, source, target = make(batch_size=5, max_length=11)
    lengths = np.stack([source.line_lengths, target.line_lengths])
    assert batches.num_truncated == (lengths > 11).any(axis=0).sum() > 0
    for s, t, labels, weights in elements_of(batches.dataset()):
        assert s.shape[1] <= 11 and t.shape[1] <= 11
        assert ((s == END).sum(1) == 1).all()
        assert (labels[np.arange(len(labels)), weights.sum(1).astype(int) - 1] == END).all()


def test_few_shapes():
    text = make_text(4001, 1)
    batches = PairBatches(text, text, END, START, batch_tokens=512)
    shapes = {(s.shape[1], t.shape[1]) for s, t, *_ in elements_of(batches.dataset())}
    assert len(shapes) < 20 < 100 < batches.num_batches
    padded = padded_length(np.arange(1, 2000))
    assert (np.diff(padded) >= 0).all() and (padded >= np.arange(1, 2000)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Expected one of `batch_size` and `batch_tokens`"),
        ({"batch_size": 3, "batch_tokens": 5}, "Expected one of"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"batch_tokens": 9, "max_length": 0}, "`max_length` must be at least 1"),
        ({"batch_size": 3, "seed": -1}, "`seed` must be"),
        ({"batch_size": 3, "pad_id": 5}, "`source` must not hold the padding"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_wrong_texts():
    with pytest.raises(ValueError, match=r"same number of lines.* 5 and 7 lines"):
        PairBatches(make_text(5, 0), make_text(7, 0), END, batch_size=3)
    with pytest.raises(ValueError, match="must have lines"):
        PairBatches(EncodedText([], []), EncodedText([], []), END, batch_size=3)
    with pytest.raises(ValueError, match="`first_batch` must be between 0 and"):
        make(batch_size=3)[0].dataset(first_batch=1000)
