"""Pairs of the translation data sets of tensorflow-datasets."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from keras_drill.data.lines import Lines
from keras_drill.data.parallel_text import ParallelText, cut_by_target
from keras_drill.data.splits import SPLITS

PREFIX = "tfds:"


def tfds_pairs(
    name: str, source: str | None = None, target: str | None = None, split: bool = True
) -> dict[str, ParallelText]:
    """Returns the sentence pairs of a tensorflow-datasets data set, by split.

    Downloads and prepares the data set if needed.

    Args:
        name: Name, configuration and version, as for `tfds.builder`.
        source: Feature that contains the source texts, usually a language code such as `"de"`.
        target: Feature that contains the target texts. If `source` and `target` are both `None`,
            the supervised keys of the data set are used.
        split: If `True`, the data set must have a training split. If it has no other split, the
            training pairs are divided into train, valid and test. If `False`, the splits do not
            change.

    Returns:
        A dict from "train", "valid" and "test" to `ParallelText`. Missing splits are omitted.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: The data set does not have these features, or has no training split and `split`
            is `True`.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise ImportError(
            f"Reading {PREFIX}{name} needs the library tensorflow-datasets: "
            "pip install tensorflow-datasets. "
            f"Received: {error}"
        ) from error
    builder = tfds.builder(name)
    features = list(builder.info.features)
    sides: tuple = (source, target)
    if sides == (None, None) and builder.info.supervised_keys:
        sides = builder.info.supervised_keys[:2]
    if sides[0] == sides[1] or not set(sides) <= set(features):
        raise ValueError(
            f"`source` and `target` must be two different features of {name}, from {features}. "
            f"Received: source={source!r}, target={target!r}"
        )
    builder.download_and_prepare()
    config = tfds.ReadConfig(interleave_cycle_length=1)  # one file after the other
    there = {
        each: next((alias for alias in aliases if alias in builder.info.splits), None)
        for each, aliases in SPLITS.items()
    }
    if there["train"] is None and (split or not any(there.values())):
        needed = "a split 'train'" if split else f"one of the splits {list(SPLITS)}"
        raise ValueError(
            f"The data set {name} must have {needed}. Received: splits {list(builder.info.splits)}"
        )
    pairs = {
        each: ParallelText(*[_TfdsLines(builder, config, alias, side) for side in sides])
        for each, alias in there.items()
        if alias is not None
    }
    return cut_by_target(pairs["train"]) if split and len(pairs) == 1 else pairs


class _TfdsLines(Lines):
    """The lines of one feature of a split. Line breaks inside a text are replaced by spaces."""

    def __init__(self, builder: Any, read_config: Any, split: str, feature: str):
        self.builder = builder
        self.read_config = read_config
        self.split = split
        self.feature = feature

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        examples = self.builder.as_dataset(
            split=self.split, read_config=self.read_config, shuffle_files=False
        )
        texts = examples.map(lambda example: example[self.feature]).batch(size)
        texts = texts.map(lambda block: tf.strings.regex_replace(block, r"\s*[\r\n]+\s*", " "))
        for block in texts.as_numpy_iterator():
            yield block.tolist()

    @property
    def origin(self) -> str:
        return f"{PREFIX}{self.builder.info.full_name}, split {self.split}"

    def fingerprint(self) -> str:
        info = self.builder.info.splits[self.split]
        parts = [
            self.builder.info.full_name,  # includes the version
            self.split,
            self.feature,
            [int(length) for length in info.shard_lengths],
            int(info.num_bytes),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
