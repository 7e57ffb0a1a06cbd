from collections.abc import Mapping
from typing import Any

import numpy as np


class ReallocationHistory(list[dict[str, Any]]):
    """List of all reallocations so far, with one dictionary for each.

    - `iteration`: training step of the reallocation.
    - `tokens`: number of tokens counted in the interval before.
    - `moves`: number of senses that moved.
    - `senses`, `from_words`, `to_words`: `[moves]`, the senses that moved, their old words and
      their new words.
    - `words_by_senses`: `[max_senses + 1]`, how many words have 0, 1, 2, ... senses afterwards.

    Checkpoints use `to_arrays` and `assign` to save and restore the list.

    Example:

    >>> history = ReallocationHistory()
    >>> history.record(700, 1400, [4], [0], [1], [0, 2, 1])
    >>> history[0]["moves"], history[0]["words_by_senses"].tolist()
    (1, [0, 2, 1])
    >>> again = ReallocationHistory()
    >>> again.assign(history.to_arrays())
    >>> again[0]["to_words"]
    array([1])
    """

    def record(self, iteration, tokens, senses, from_words, to_words, words_by_senses):
        """Appends a reallocation. The arguments are the entries of its dictionary."""
        self.append(
            {
                "iteration": int(iteration),
                "tokens": float(tokens),
                "moves": len(senses),
                "senses": np.asarray(senses),
                "from_words": np.asarray(from_words),
                "to_words": np.asarray(to_words),
                "words_by_senses": np.asarray(words_by_senses),
            }
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the whole history as a flat dictionary of arrays."""
        arrays = {
            name: np.array([record[name] for record in self])
            for name in ("iteration", "tokens", "moves", "words_by_senses")
        }
        for name in ("senses", "from_words", "to_words"):
            parts = [record[name] for record in self]
            arrays[name] = np.concatenate(parts) if parts else np.zeros(0, int)
        return arrays

    def assign(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replaces the history by one that `to_arrays` returned."""
        self.clear()
        ends = np.cumsum(arrays["moves"]).astype(int)
        for i, end in enumerate(ends):
            part = slice(end - int(arrays["moves"][i]), end)
            self.record(
                arrays["iteration"][i],
                arrays["tokens"][i],
                arrays["senses"][part],
                arrays["from_words"][part],
                arrays["to_words"][part],
                arrays["words_by_senses"][i],
            )
