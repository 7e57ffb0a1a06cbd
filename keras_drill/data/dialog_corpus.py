"""Finds the dialogues of a corpus, as pairs of a context and a response."""

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence

from keras_drill.data.batches import check_at_least_one
from keras_drill.data.checks import check_is
from keras_drill.data.corpus import Corpus
from keras_drill.data.lines import Lines
from keras_drill.data.parallel_text import ParallelText


class DialogCorpus:
    """Finds the train, valid and test dialogues of a corpus, as pairs of context and response.

    Each line of the text is a dialogue. A mark, such as `__eou__`, ends or separates the turns of
    the speakers, as in DailyDialog. Every turn except the first one is a response, the target. Its
    context, the source, consists of the turns before it. With `context_turns=2` the dialogue
    `a __eou__ b __eou__ c __eou__ d __eou__` is:

        source                    target
        a                         b
        a __eou__ b               c
        b __eou__ c               d

    Text after the last mark is also a turn. Turns without words are ignored. For files with a
    context, a tab and a response in each line, use `ParallelCorpus`.

    `WordTokenizer` and `WhitespaceTokenizer` keep a separator such as `__eou__` as one token.
    Subword tokenizers do so if they are trained with `symbols=["__eou__"]`.

    Args:
        path: Folder, file, list of files, or mapping from split to file or files: see `Corpus`.
        turn_end: The mark after or between the turns, any text.
        context_turns: Largest number of turns in the context of a response; `None` for all.
        separator: The word that `source` has between the turns of a context.
        drop_repeated: Whether to drop training dialogues that also occur in the valid or test text.
            DailyDialog has 172 such dialogues.
        split: Whether to split files that have no splits, and to raise an error if there are no
            training dialogues; see `Corpus`.

    Attributes:
        splits: Mapping from the names of the existing splits to a `ParallelText` of contexts
            (`source`) and responses (`target`).
        num_dropped: Number of training dialogues that `drop_repeated` drops.

    Raises:
        ValueError: An argument is out of range. Iteration over a split raises the error if no
            dialogue of the split has two turns.

    Example:

    >>> from keras_drill.data import DialogCorpus
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("Hello . __eou__ Hi ! __eou__ Are you well ? __eou__\\n")
    >>> corpus = DialogCorpus({"train": path}, context_turns=2)
    >>> for context, response in corpus.splits["train"]:
    ...     print(context.decode(), "|", response.decode())
    Hello . | Hi !
    Hello . __eou__ Hi ! | Are you well ?

    References:
        - [Li et al., 2017](https://arxiv.org/abs/1710.03957) (DailyDialog)
    """

    def __init__(
        self,
        path: str | os.PathLike | Sequence | Mapping,
        turn_end: str = "__eou__",
        context_turns: int | None = 1,
        separator: str = "__eou__",
        drop_repeated: bool = False,
        split: bool = True,
    ):
        check_at_least_one(context_turns=context_turns)
        check_is("turn_end", turn_end, str, "text")
        check_is("separator", separator, str, "text")
        if not turn_end or separator.split() != [separator]:
            raise ValueError(
                "`turn_end` must not be empty, and `separator` must be one word. "
                f"Received: turn_end={turn_end!r}, separator={separator!r}"
            )
        self.path = path
        self.turn_end = turn_end
        self.context_turns = context_turns
        self.separator = separator
        self.drop_repeated = drop_repeated
        dialogues = {
            name: _Dialogues(lines, turn_end)
            for name, lines in Corpus(path, split=split).splits.items()
        }
        self.num_dropped = 0
        if drop_repeated and "train" in dialogues:
            held_out = frozenset(
                _digest(turns)
                for name, each in dialogues.items()
                for turns in each
                if name != "train"
            )
            self.num_dropped = sum(_digest(turns) in held_out for turns in dialogues["train"])
            dialogues["train"] = _Dialogues(dialogues["train"].lines, turn_end, held_out)
        self.splits = {
            name: ParallelText(
                *[_Side(each, context_turns, separator, column) for column in (0, 1)]
            )
            for name, each in dialogues.items()
        }


@dataclasses.dataclass(frozen=True)
class _Dialogues:
    """The turns of each dialogue, without the dialogues that have given digests (hashes)."""

    lines: Lines
    turn_end: str
    left_out: frozenset[bytes] = frozenset()

    def __iter__(self) -> Iterator[list[bytes]]:
        for line in self.lines:
            turns = [turn.strip() for turn in line.split(self.turn_end.encode())]
            turns = [turn for turn in turns if turn]
            if not self.left_out or _digest(turns) not in self.left_out:
                yield turns

    def fingerprint(self) -> str:
        left_out = hashlib.sha256(b"".join(sorted(self.left_out))).hexdigest()
        return f"{self.lines.fingerprint()} {self.turn_end!r} {left_out}"


class _Side(Lines):
    """The contexts of dialogues (column 0), or the responses (column 1)."""

    def __init__(
        self, dialogues: _Dialogues, context_turns: int | None, separator: str, column: int
    ):
        self.dialogues = dialogues
        self.context_turns = context_turns
        self.separator = separator
        self.column = column

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        lines = (pair[self.column] for turns in self.dialogues for pair in self._pairs(turns))
        block = list(itertools.islice(lines, size))
        if not block:
            raise ValueError(
                f"Expected one dialogue per line, with {self.dialogues.turn_end!r} after each "
                "turn, but no line has two or more turns. "
                f"Received: {self.dialogues.lines.origin}"
            )
        while block:
            yield block
            block = list(itertools.islice(lines, size))

    @property
    def origin(self) -> str:
        return self.dialogues.lines.origin

    def fingerprint(self) -> str:
        parts = [self.dialogues.fingerprint(), self.context_turns, self.separator, self.column]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _pairs(self, turns: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
        separator = f" {self.separator} ".encode()
        for place in range(1, len(turns)):
            start = 0 if self.context_turns is None else max(place - self.context_turns, 0)
            yield separator.join(turns[start:place]), turns[place]


def _digest(turns: list[bytes]) -> bytes:
    return hashlib.sha256(b"\n".join(turns)).digest()  # no turn contains a line break
