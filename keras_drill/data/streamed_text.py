"""Stores and reads token ids on disk, for texts that are larger than memory."""

import functools
import itertools
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_drill.data.atomic import replace_file
from keras_drill.data.encoded_text import as_ids, check_coders, encode_blocks, encoded_fingerprint
from keras_drill.data.file_lock import file_lock
from keras_drill.data.lines import Lines, as_lines
from keras_drill.data.read_json import read_json
from keras_drill.data.tokenizer import Tokenizer
from keras_drill.data.vocabulary import Vocabulary

_TOKENS_PER_RECORD = 1 << 14
_RECORDS_PER_SHARD = 1 << 11  # 128 MiB of ids
_HEADER, _FOOTER = 12, 4  # of a record: its length and checksums
_INDEX, _DESCRIPTION = "index.npy", "description.json"
_OF_INCOMPLETE_TEXTS = ("shard-*.tfrecord", _INDEX, f".{_DESCRIPTION}.*")


class StreamedText:
    """The token ids of a text on disk, for texts that are larger than memory.

    The class methods `encode` and `write` write the text; `encode` ends each line with an end
    token. The ids are in TFRecord shards, and are read when they are needed. `ContiguousBatches`
    makes batches from a `StreamedText`, and `len(text)` is the number of ids.

    Each record is a `tf.train.Example` with 16,384 ids (the last record may have fewer), as the
    bytes of an int32 array in the feature `ids`. An index beside the shards has the position and
    the checksum of each record, so that reading can begin anywhere.

    Args:
        folder: Folder of a text that `StreamedText.write` has written completely.

    Raises:
        ValueError: The folder is not a streamed text, or is damaged.

    Example:

    >>> from keras_drill.data import StreamedText
    >>> folder = getfixture("tmp_path") / "text"
    >>> text = StreamedText.write(folder, [np.arange(5), np.arange(7)])
    >>> len(text), text.read(3, 7)
    (12, array([3, 4, 0, 1], dtype=int32))
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        if not (self.folder / _DESCRIPTION).exists():
            raise ValueError(
                "`folder` must be a folder that `StreamedText.write` wrote completely. "
                f"Received: folder={str(folder)!r}"
            )
        description = read_json(self.folder / _DESCRIPTION)
        self._shards = sorted(self.folder.glob("shard-*.tfrecord"))
        if len(self._shards) != description.get("num_shards"):
            raise self._damaged("some of its files are missing")
        # First token, shard, position in the shard, size and checksum of each record, `[R, 5]`.
        try:
            self._index = np.load(self.folder / _INDEX, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise self._damaged(f"{_INDEX} cannot be read") from error
        if zlib.crc32(self._index.tobytes()) != description.get("index_checksum"):
            raise self._damaged(f"{_INDEX} has changed")
        self._length: int = description["num_tokens"]

    @classmethod
    def encode(
        cls,
        lines: Lines | Iterable[str | bytes],
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        cache: str | os.PathLike,
        verbose: int = 0,
    ) -> "StreamedText":
        """Encodes a text, or opens the encoded text from the cache.

        The cache is used if the lines, the tokenizer and the vocabulary are the same as before.
        Only one block of lines is in memory at a time. If several processes encode the same text,
        one of them encodes and the others wait.

        Args:
            lines: The text, such as `TextLines(path)`, or a list of strings.
            tokenizer: Tokenizer that splits the lines into words.
            vocabulary: Vocabulary that maps words to ids.
            cache: Folder of the cache, created if necessary. Several texts may share the folder.
            verbose: 1 to show progress.
        """
        lines = as_lines(lines)
        check_coders(tokenizer, vocabulary)
        folder = Path(cache) / f"streamed-{encoded_fingerprint(lines, tokenizer, vocabulary)}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(folder.with_suffix(".lock")):
            if not (folder / _DESCRIPTION).exists():
                blocks = encode_blocks(lines, tokenizer, vocabulary, verbose)
                cls.write(folder, (ids for ids, _ in blocks))
        return cls(folder)

    @classmethod
    def write(cls, folder: str | os.PathLike, blocks: Iterable[np.ndarray]) -> "StreamedText":
        """Writes a text block by block, and returns the `StreamedText`.

        If the folder contains the incomplete text of a killed process, the text is replaced.

        Args:
            folder: A new folder for this text alone.
            blocks: The ids of the text, as int arrays `[n]` of any lengths n, one after the other.

        Raises:
            FileExistsError: The folder already contains a text, or other files.
            ValueError: The text is empty.
        """
        folder = Path(folder)
        if (folder / _DESCRIPTION).exists():
            raise FileExistsError(
                "`folder` must not contain a text yet: open that text by `StreamedText(folder)`, "
                f"or pass a new folder. Received: folder={str(folder)!r}"
            )
        for path in folder.glob("*"):
            if not any(path.match(pattern) for pattern in _OF_INCOMPLETE_TEXTS):
                raise FileExistsError(
                    "`folder` must be new or empty, or contain only the files of an interrupted "
                    "call. Pass another folder. "
                    f"Received: folder={str(folder)!r}, which contains {path.name!r}"
                )
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        index: list[tuple[int, int, int, int, int]] = []
        records = _records(blocks)
        first = num_shards = 0
        while some := list(itertools.islice(records, 1)):
            path = folder / f"shard-{num_shards:05d}.tfrecord"
            place = 0
            with tf.io.TFRecordWriter(str(path)) as writer:
                for ids in itertools.chain(some, itertools.islice(records, _RECORDS_PER_SHARD - 1)):
                    record = _example(ids)
                    writer.write(record)
                    place += _HEADER
                    index.append((first, num_shards, place, len(record), zlib.crc32(record)))
                    first, place = first + len(ids), place + len(record) + _FOOTER
            _flush(path)
            num_shards += 1
        if not index:
            raise ValueError("`blocks` must contain tokens. Received: no tokens")
        array = np.array(index, np.int64)
        np.save(folder / _INDEX, array)
        _flush(folder / _INDEX)
        description = {
            "num_tokens": first,
            "num_shards": num_shards,
            "index_checksum": zlib.crc32(array.tobytes()),
        }
        # The description is written last, since it marks the text as complete.
        replace_file(folder / _DESCRIPTION, json.dumps(description, indent=2) + "\n")
        return cls(folder)

    def __len__(self) -> int:
        return self._length

    def read(self, start: int, stop: int) -> np.ndarray:
        """Returns the ids from `start` (inclusive) to `stop` (exclusive), int32."""
        return self.reader(1)(start, stop)

    def blocks(self) -> Iterator[np.ndarray]:
        """Yields all ids in order, as int32 arrays. Raises `ValueError` for a damaged record."""
        for number in range(len(self._index)):
            yield self._record(number)

    def reader(self, num_records: int) -> Callable[[int, int], np.ndarray]:
        """Returns a function with the arguments and the result of `read`, for many calls: the
        function keeps recently read records in memory.

        Args:
            num_records: Number of records to keep in memory. A record has 16,384 ids.
        """
        record = functools.lru_cache(maxsize=num_records)(self._record)
        firsts = self._index[:, 0]

        def read(start: int, stop: int) -> np.ndarray:
            if not 0 <= start <= stop <= len(self):
                raise ValueError(
                    f"Expected 0 <= `start` <= `stop` <= {len(self)}, the number of tokens. "
                    f"Received: start={start}, stop={stop}"
                )
            if start == stop:
                return np.zeros(0, np.int32)
            number = int(np.searchsorted(firsts, start, side="right")) - 1
            last = int(np.searchsorted(firsts, stop, side="left"))
            parts = [
                record(each)[max(start - firsts[each], 0) : stop - firsts[each]]
                for each in range(number, last)
            ]
            return np.concatenate(parts)

        return read

    def _record(self, number: int) -> np.ndarray:
        _, shard, place, size, checksum = self._index[number].tolist()
        with open(self._shards[shard], "rb", buffering=0) as file:
            content = os.pread(file.fileno(), size, place)
        if zlib.crc32(content) != checksum:
            raise self._damaged(f"record {number} in {self._shards[shard].name} has changed")
        feature = tf.train.Example.FromString(content).features.feature["ids"]
        return np.frombuffer(feature.bytes_list.value[0], "<i4")

    def _damaged(self, reason: str) -> ValueError:
        return ValueError(
            f"The text is damaged: {reason}. Delete the folder and write it again. "
            f"Received: folder={str(self.folder)!r}"
        )


def _flush(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _records(blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yields the ids of all blocks in arrays of equal length. The last array may be shorter."""
    pending = np.zeros(0, np.int32)
    for block in blocks:
        pending = np.concatenate([pending, as_ids(block, "blocks")])
        whole = len(pending) - len(pending) % _TOKENS_PER_RECORD
        yield from pending[:whole].reshape(-1, _TOKENS_PER_RECORD)
        pending = pending[whole:]
    if len(pending):
        yield pending


def _example(ids: np.ndarray) -> bytes:
    value = tf.train.BytesList(value=[ids.astype("<i4").tobytes()])
    features = tf.train.Features(feature={"ids": tf.train.Feature(bytes_list=value)})
    return tf.train.Example(features=features).SerializeToString()
