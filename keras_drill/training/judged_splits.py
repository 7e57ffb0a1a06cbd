"""The text that a run is judged on."""

import os

import numpy as np

from keras_drill.data import Corpus, EncodedText
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.run_error import RunError


def judged_splits(run: LoadedRun, data: str | os.PathLike | None = None) -> dict[str, np.ndarray]:
    """Token ids of the validation and the test text, as far as there are both, in this order.

    Args:
        run: The run, whose words are used.
        data: The text; `None` is that of the run.
    """
    corpus = Corpus(run.config.data.path if data is None else data)
    splits = {name: lines for name, lines in corpus.splits.items() if name != "train"}
    if not splits:
        raise RunError(f"{corpus.path} has no validation or test text")
    return {
        name: EncodedText.encode(lines, run.tokenizer, run.vocabulary).ids
        for name, lines in splits.items()
    }
