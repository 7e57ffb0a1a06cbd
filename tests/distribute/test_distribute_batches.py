"""The parts of replicas, put together again, are the batches of one device."""

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import (
    ContiguousBatches,
    EncodedText,
    PairBatches,
    SentenceBatches,
    StreamedText,
)
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.data.write_examples import ExampleWriter
from keras_drill.distribute import distribute_batches, strategy


def texts(lines=47):
    rng = np.random.default_rng(3)
    lengths = rng.integers(2, 17, (2, lines)).astype("int32")
    return [EncodedText(rng.integers(3, 99, row.sum()).astype("int32"), row) for row in lengths]


def contiguous():
    return ContiguousBatches(texts()[0].ids, 12, 5, variable_length=True, first_token=1)


def sentences():
    return SentenceBatches(texts()[0], 12, end_id=1)


def pairs():
    return PairBatches(*texts(), end_id=1, batch_tokens=97)


def examples(folder):
    """Batches of what a pipeline wrote."""
    text = texts()[0]
    with ExampleWriter(folder, "train") as writer:
        writer.write({"text_ids": (text.ids, text.line_lengths)})
    return SentenceBatches(ExampleFolder(folder).encoded("train", "text"), 12, end_id=1)


def streamed(folder):
    """Of a text on the disk, of which each worker reads its rows."""
    text = StreamedText.write(folder / "text", np.array_split(texts()[0].ids, 5))
    return ContiguousBatches(text, 12, 5, variable_length=True, first_token=1)


KINDS = {
    "contiguous": lambda folder: contiguous(),
    "streamed": streamed,
    "sentences": lambda folder: sentences(),
    "pairs": lambda folder: pairs(),
    "examples": examples,
}


class Scheme:
    """A strategy as far as data is concerned: so many workers of so many replicas."""

    def __init__(self, workers, here):
        self.num_replicas_in_sync = workers * here
        self.workers = workers

    def distribute_datasets_from_function(self, parts):
        return [
            parts(tf.distribute.InputContext(self.workers, i, self.num_replicas_in_sync))
            for i in range(self.workers)
        ]


def global_batches(batches, workers, here, first_batch):
    """What all replicas get in each step, in their order."""
    datasets = distribute_batches(batches, Scheme(workers, here), 2, first_batch)
    datasets = [datasets] if workers * here == 1 else datasets
    read = [[tf.nest.flatten(part) for part in dataset] for dataset in datasets]
    steps = len(read[0]) // here
    assert {len(parts) for parts in read} == {steps * here}
    for step in range(steps):
        parts = [part for one in read for part in one[step * here : (step + 1) * here]]
        yield [np.concatenate(columns) for columns in zip(*parts, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("workers", "here"), [(1, 2), (2, 1), (3, 1), (3, 2)])
def test_the_batches_are_the_same_whatever_the_number_of_workers(kind, workers, here, tmp_path):
    """Also after a resume in the middle of an epoch with another number of them."""
    batches = KINDS[kind](tmp_path)
    one = list(global_batches(batches, 1, 1, 0))
    first = batches.num_batches // 2
    assert first > 0 and len(one) == batches.num_batches
    for expected, found in zip(
        one[first:], global_batches(batches, workers, here, first), strict=True
    ):
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_no_epoch_ends_with_a_wait_for_the_thread_that_tunes_datasets(kind, tmp_path):
    """It may be a minute, after long epochs and seldom: so it is the option that is tested."""
    batches = KINDS[kind](tmp_path)
    for dataset in (batches.dataset(), *distribute_batches(batches, Scheme(1, 2), 2)):
        assert dataset.options().autotune.enabled is False


@pytest.mark.parametrize(("num_shards", "shard"), [(0, 0), (2, 2), (2, -1)])
def test_a_shard_that_there_is_not(num_shards, shard):
    for make in (contiguous, sentences, pairs):
        with pytest.raises(ValueError, match=f"Received: num_shards={num_shards}, shard={shard}"):
            make().dataset(num_shards=num_shards, shard=shard)


def test_rows_that_cannot_be_shared_out_are_refused():
    with pytest.raises(ValueError, match=r"must divide `batch_size`=12. Received: num_shards=5"):
        contiguous().dataset(num_shards=5, shard=0)


def test_one_device_reads_the_batches_themselves():
    dataset = distribute_batches(contiguous(), strategy("none"), first_batch=1)
    assert dataset.cardinality() == contiguous().num_batches - 1
