import numpy as np
import pytest

from keras_drill.data import EncodedText, SentenceBatches

END, START, PAD = 1, 2, 0


def make_text(num_lines, seed=0):
    """Lines of 0 to 22 tokens, every token of the text different."""
    lengths = np.random.RandomState(seed).randint(0, 23, num_lines) + 1
    ids = np.arange(lengths.sum()) + 3
    ids[np.cumsum(lengths) - 1] = END
    return EncodedText(ids, lengths)


def arrays(dataset):
    return [tuple(part.numpy() for part in element) for element in dataset]


def assert_equal(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


OPTIONS = [
    {},
    {"shuffle": False},
    {"bucket_batches": 1},
    {"bucket_batches": 3},
    {"fill_last_batch": True},
    {"fill_last_batch": True, "length_multiple": 5, "seed": 11},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_sentence_comes_once_and_is_well_formed(options):
    text = make_text(101)
    batches = SentenceBatches(text, 7, END, START, PAD, **options)
    elements = arrays(batches.dataset(epoch=3))
    assert len(elements) == batches.num_batches == batches.dataset().cardinality()
    seen = []
    for tokens, targets, weights in elements:
        assert tokens.shape == targets.shape == weights.shape
        assert tokens.shape[1] % options.get("length_multiple", 1) == 0
        for row, target, weight in zip(tokens, targets, weights, strict=True):
            length = int(weight.sum())
            assert (weight[:length] == 1).all()
            assert (row[length:] == PAD).all() and (target[length:] == PAD).all()
            if length:
                assert row[0] == START and target[length - 1] == END
                np.testing.assert_array_equal(row[1:length], target[: length - 1])
                seen.append(tuple(target[:length]))
    lines = np.split(text.ids, np.cumsum(text.line_lengths)[:-1])
    expected = [tuple(line) for line in lines if len(line) > 1]
    assert sorted(seen) == sorted(expected)
    assert (seen == expected) == (options.get("shuffle") is False)
    assert batches.num_targets == sum(weights.sum() for *_, weights in elements)


def test_epochs_differ_and_repeat():
    text = make_text(101)
    batches = SentenceBatches(text, 7, END, seed=5)
    first, second = arrays(batches.dataset(0)), arrays(batches.dataset(1))
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(first, second, strict=True))
    assert_equal(arrays(SentenceBatches(text, 7, END, seed=5).dataset(0)), first)
    other = arrays(SentenceBatches(text, 7, END, seed=6).dataset(0))
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("options", OPTIONS)
def test_resumed_stream_is_the_uninterrupted_one(options):
    batches = SentenceBatches(make_text(101), 7, END, START, PAD, **options)
    whole = arrays(batches.dataset(epoch=1, epochs=2))
    for done in (1, batches.num_batches):
        assert_equal(arrays(batches.dataset(1, first_batch=done, epochs=2)), whole[done:])


def test_buckets_save_padding():
    text = make_text(1009)
    share = {}
    for bucket in (1, 20):
        elements = arrays(SentenceBatches(text, 7, END, bucket_batches=bucket).dataset())
        share[bucket] = sum(w.sum() for *_, w in elements) / sum(w.size for *_, w in elements)
    assert share[20] > 0.95 > 0.7 > share[1]


def test_static_shapes_and_truncation():
    text = make_text(101)
    batches = SentenceBatches(
        text, 7, END, START, max_length=13, length_multiple=13, fill_last_batch=True
    )
    dataset = batches.dataset()
    assert [spec.shape for spec in dataset.element_spec] == 3 * [(7, 13)]
    assert batches.num_truncated == (text.line_lengths > 13).sum()
    kept = np.minimum(text.line_lengths[text.line_lengths > 1], 13)
    assert batches.num_targets == kept.sum() == sum(w.sum() for *_, w in arrays(dataset))


@pytest.mark.parametrize(
    ("max_length", "multiple", "width"), [(20, 5, None), (13, 26, 26), (None, 5, None)]
)
def test_one_width_is_told_only_where_there_is_one(max_length, multiple, width):
    batches = SentenceBatches(
        make_text(53), 7, END, START, max_length=max_length, length_multiple=multiple
    )
    assert batches.dataset().element_spec[0].shape[1] == width
    widths = {tokens.shape[1] for tokens, *_ in arrays(batches.dataset())}
    assert widths == {width} if width else len(widths) > 1


def test_the_end_token_starts_sentences_where_there_is_no_start_token():
    tokens, _, _ = next(iter(SentenceBatches(make_text(11), 2, END).dataset()))
    assert (tokens[:, 0] == END).numpy().all()


def test_shards_are_rows_of_each_batch():
    batches = SentenceBatches(make_text(101), 6, END, fill_last_batch=True)
    shards = [arrays(batches.dataset(num_shards=2, shard=shard)) for shard in (0, 1)]
    joined = [
        tuple(np.concatenate(parts) for parts in zip(*pair, strict=True))
        for pair in zip(*shards, strict=True)
    ]
    assert_equal(joined, arrays(batches.dataset()))


def test_wrong_arguments():
    text = EncodedText([5, END, END, 7, END], [2, 1, 2])
    with pytest.raises(ValueError, match=r"has 2 sentences.*lower `batch_size`.*batch_size=3"):
        SentenceBatches(text, 3, END)
    assert SentenceBatches(text, 3, END, fill_last_batch=True).num_batches == 1
    with pytest.raises(ValueError, match=r"`max_length`.*Received: max_length=0"):
        SentenceBatches(text, 1, END, max_length=0)
    with pytest.raises(ValueError, match=r"`first_batch`.*Received: first_batch=-1"):
        SentenceBatches(text, 1, END).dataset(first_batch=-1)
    with pytest.raises(ValueError, match=r"`num_shards`.*Received: num_shards=2"):
        SentenceBatches(text, 1, END).dataset(num_shards=2)
