import keras
import numpy as np
import pytest

import keras_drill
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


@pytest.mark.parametrize("long_pairs", ["cut", "end"])
def test_long_sides_are_cut_and_counted(long_pairs):
    batches, source, target = make(batch_size=5, max_length=11, long_pairs=long_pairs)
    lengths = np.stack([source.line_lengths, target.line_lengths])
    assert batches.num_truncated == (lengths > 11).any(axis=0).sum() > 0
    assert (batches.num_truncated_sources, batches.num_truncated_targets) == tuple(
        (lengths > 11).sum(axis=1)
    )
    assert batches.num_dropped == 0
    wholes = {line[:10]: line for line in lines(target)}
    for s, _, labels, weights in elements_of(batches.dataset()):
        assert s.shape[1] <= 11 and labels.shape[1] <= 11
        assert ((s == END).sum(1) == 1).all()
        for row, length in zip(labels, weights.sum(1).astype(int), strict=True):
            whole = wholes[tuple(row[: min(length, 10)])]
            is_end = row[length - 1] == END
            # A target that goes on does not end where it was cut.
            assert is_end == (len(whole) <= 11 or long_pairs == "end")
            if not is_end:
                assert tuple(row[:length]) == whole[:11]


def test_an_autoencoder_reads_what_was_cut_with_an_end_and_writes_it_without():
    text = EncodedText([3, 4, 5, END, 6, END], [4, 2])
    batches = PairBatches(
        text, text, END, START, batch_size=2, max_length=3, long_pairs="cut", shuffle=False
    )
    (element,) = elements_of(batches.dataset())
    assert sorted(pairs_of([element])) == [((3, 4, END), (3, 4, 5)), ((6, END), (6, END))]


def test_long_uneven_and_empty_pairs_are_dropped_as_if_they_had_not_been_there():
    options = {"batch_tokens": 512, "max_length": 29, "max_length_ratio": 2.5, "drop_empty": True}
    batches, source, target = make(**options)
    kept, reasons = [], [0, 0, 0]
    for s, t in zip(lines(source), lines(target), strict=True):
        if 1 in (len(s), len(t)):
            reasons[0] += 1
        elif max(len(s), len(t)) > 29:
            reasons[1] += 1
        elif (len(s) - 1) / (len(t) - 1) > 2.5 or (len(t) - 1) / (len(s) - 1) > 2.5:
            reasons[2] += 1
        else:
            kept.append((s, t))
    assert [batches.num_empty, batches.num_long, batches.num_uneven] == reasons and min(reasons) > 0
    assert batches.num_dropped == sum(reasons) and batches.num_truncated == 0
    sides = [EncodedText(np.concatenate(s), [len(x) for x in s]) for s in zip(*kept, strict=True)]
    without = PairBatches(*sides, END, START, batch_tokens=512)
    assert pairs_of(elements_of(batches.dataset(3))) == pairs_of(elements_of(without.dataset(3)))
    assert batches.num_targets == without.num_targets


def test_nothing_is_dropped_where_nothing_is_asked_for():
    batches, source, _ = make(batch_size=3)
    assert batches.num_dropped == 0 and len(batches.order) == len(source.line_lengths)


def test_few_shapes():
    text = make_text(4001, 1)
    batches = PairBatches(text, text, END, START, batch_tokens=512)
    shapes = {(s.shape[1], t.shape[1]) for s, t, *_ in elements_of(batches.dataset())}
    assert len(shapes) < 20 < 100 < batches.num_batches
    padded = padded_length(np.arange(1, 2000))
    assert (np.diff(padded) >= 0).all() and (padded >= np.arange(1, 2000)).all()


def test_lengths_are_padded_to_few_sizes():
    lengths = [1, 4, 5, 17, 128, 129, 192, 193]
    assert padded_length(lengths).tolist() == [4, 4, 6, 20, 128, 192, 192, 256]
    assert padded_length(lengths, 19).tolist() == [4, 4, 6, 19, 19, 19, 19, 19]


@pytest.mark.parametrize(("most", "sizes"), [(20, [5, 5, 2]), (19, [4, 4, 4])])
def test_batches_are_as_large_as_their_tokens_allow(most, sizes):
    text = EncodedText([3, 4, END] * 12, [3] * 12)  # padded to 4
    batches = PairBatches(text, text, END, START, batch_tokens=most)
    assert sorted((len(s) for s, *_ in elements_of(batches.dataset())), reverse=True) == sizes


def test_pairs_with_an_empty_side_have_no_ratio():
    source = EncodedText([5, END, END, 5, 6, END, 7, END], [2, 1, 3, 2])
    target = EncodedText([END, 8, END, 8, END, 9, END], [1, 2, 2, 2])
    batches = PairBatches(source, target, END, START, batch_size=1, max_length_ratio=1)
    assert sorted(pairs_of(elements_of(batches.dataset()))) == [
        ((END,), (8, END)),
        ((5, END), (END,)),
        ((7, END), (9, END)),
    ]
    assert (batches.num_empty, batches.num_uneven, batches.num_dropped) == (0, 1, 1)


def test_shards_are_rows_of_each_batch():
    batches, *_ = make(batch_size=7)
    whole = elements_of(batches.dataset())
    shards = [elements_of(batches.dataset(num_shards=3, shard=shard)) for shard in range(3)]
    for expected, *parts in zip(whole, *shards, strict=True):
        for column, *of_shards in zip(expected, *parts, strict=True):
            np.testing.assert_array_equal(np.concatenate(of_shards), column)
        assert len(parts[0][0]) == -(-len(expected[0]) // 3)


def test_each_seed_has_an_order_of_its_own():
    one, other = (make(batch_size=7, seed=seed)[0] for seed in (1, 2))
    found = [pairs_of(elements_of(batches.dataset())) for batches in (one, other)]
    assert found[0] != found[1] and sorted(found[0]) == sorted(found[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Expected either `batch_size` or `batch_tokens`"),
        ({"batch_size": 3, "batch_tokens": 5}, "Expected either"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"batch_tokens": 9, "max_length": 0}, "`max_length` must be at least 1"),
        ({"batch_size": 3, "seed": -1}, "`seed` must be"),
        ({"batch_size": 3, "pad_id": 5}, "`source` must not contain the padding token"),
        ({"batch_size": 2.5}, "`batch_size` must be an integer"),
        ({"batch_size": 3, "long_pairs": "keep"}, "`long_pairs` must be one of"),
        ({"batch_size": 3, "max_length_ratio": 0.5}, "`max_length_ratio` must be at least 1"),
        (
            {"batch_size": 3, "max_length": 1, "drop_empty": True},
            r"must have pairs to keep, but all are dropped: of 211 .*`max_length`",
        ),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_empty_pairs_are_kept_or_dropped():
    source = EncodedText([5, END, END, 6, END, END], [2, 1, 2, 1])
    target = EncodedText([7, END, 8, END, END, END], [2, 2, 1, 1])
    kept = PairBatches(source, target, END, START, batch_size=3)
    assert sorted(pairs_of(elements_of(kept.dataset()))) == [
        ((END,), (END,)),
        ((END,), (8, END)),
        ((5, END), (7, END)),
        ((6, END), (END,)),
    ]
    assert (kept.num_dropped, kept.num_targets) == (0, 6)
    dropped = PairBatches(source, target, END, START, batch_size=3, drop_empty=True)
    assert pairs_of(elements_of(dropped.dataset(epoch=3))) == [((5, END), (7, END))]
    assert (dropped.num_dropped, dropped.num_targets, dropped.order.tolist()) == (3, 2, [0])
    with pytest.raises(ValueError, match=r"of 1 pairs, 1 have an empty side"):
        PairBatches(
            EncodedText([END], [1]), EncodedText([5, END], [2]), END, batch_size=1, drop_empty=True
        )


@pytest.mark.parametrize("shuffle", [True, False])
def test_dropping_is_as_if_the_pairs_had_not_been_there(shuffle):
    options = {"batch_tokens": 512, "shuffle": shuffle, "max_length": 23, "long_pairs": "end"}
    _, source, target = make(batch_size=1)
    batches = PairBatches(source, target, END, START, drop_empty=True, **options)
    whole = [p for p in zip(lines(source), lines(target), strict=True) if len(p[0]) > 1 < len(p[1])]
    assert 0 < batches.num_dropped == len(lines(source)) - len(whole)
    sides = [EncodedText(np.concatenate(s), [len(x) for x in s]) for s in zip(*whole, strict=True)]
    without = PairBatches(*sides, END, START, **options)
    assert pairs_of(elements_of(batches.dataset(2))) == pairs_of(elements_of(without.dataset(2)))
    assert batches.num_truncated == without.num_truncated > 0


def test_each_side_has_its_own_end_token():
    source = EncodedText([5, 6, 7, 90, 8, 90], [4, 2])
    target = EncodedText([5, END, 6, 7, 8, END], [2, 4])
    batches = PairBatches(
        source, target, END, START, batch_size=2, max_length=3, long_pairs="end", shuffle=False
    )
    assert sorted(pairs_of(elements_of(batches.dataset()))) == [
        ((5, 6, 90), (5, END)),
        ((8, 90), (6, 7, END)),
    ]


def test_an_autoencoder_has_one_text():
    text = make_text(31, 4)
    batches = PairBatches(text, text, END, START, batch_size=5)
    for source, _, labels, weights in elements_of(batches.dataset()):
        np.testing.assert_array_equal(source, labels)
        np.testing.assert_array_equal(source != PAD, weights == 1)


@pytest.mark.slow
def test_fit_goes_on_where_it_stopped():
    """`fit(initial_epoch)` and an epoch entered in its middle, against one `fit` without a stop."""
    text = make_text(42, 4, longest=4)  # one shape
    ids = np.unique(text.ids)
    text = EncodedText(np.searchsorted(ids, text.ids) + 1, text.line_lengths)
    end = int(text.ids[-1])
    batches = PairBatches(text, text, end, len(ids) + 2, batch_size=7)
    size = batches.num_batches
    assert size == 6
    backbone = keras_drill.models.RecurrentEncoderDecoder(len(ids) + 3, 5, units=7, dropout=0.0)
    model = keras_drill.SequenceToSequence(backbone, keras_drill.OutputLayer(len(ids) + 3))
    model.compile(keras.optimizers.SGD(0.5))
    weights = model.get_weights()

    def train(*parts):
        model.set_weights(weights)
        for dataset, options in parts:
            model.fit(dataset, verbose=0, shuffle=False, **options)
        return model.get_weights()

    steps = {"steps_per_epoch": size}
    whole = train((batches.dataset(epochs=3), {"epochs": 3, **steps}))
    resumed = train(
        (batches.dataset(), {"epochs": 1}),
        (batches.dataset(epoch=1, epochs=2), {"initial_epoch": 1, "epochs": 3, **steps}),
    )
    middle = train(
        (batches.dataset(epochs=2).take(size + 3), {"epochs": 1}),
        (batches.dataset(epoch=1, first_batch=3), {"initial_epoch": 1, "epochs": 2}),
        (batches.dataset(epoch=2), {"initial_epoch": 2, "epochs": 3}),
    )
    other = train((batches.dataset(epoch=1, epochs=3), {"epochs": 3, **steps}))
    for one, two, three in zip(whole, resumed, middle, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)
    assert any((one != two).any() for one, two in zip(whole, other, strict=True))


def test_wrong_texts():
    with pytest.raises(ValueError, match=r"same number of lines.* 5 and target of 7 lines"):
        PairBatches(make_text(5, 0), make_text(7, 0), END, batch_size=3)
    with pytest.raises(ValueError, match="must have at least one line"):
        PairBatches(EncodedText([], []), EncodedText([], []), END, batch_size=3)
    with pytest.raises(ValueError, match="`first_batch` must be between 0 and"):
        make(batch_size=3)[0].dataset(first_batch=1000)
