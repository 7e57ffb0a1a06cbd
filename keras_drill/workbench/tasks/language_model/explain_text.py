"""Explains the text preprocessing of a language model."""

import sys
from collections.abc import Sequence

import numpy as np

from keras_drill.data.paragraphs import is_wrapped
from keras_drill.workbench.tasks.explain_text import (
    changes_of,
    loses_indentation,
    median_length,
    percent,
    share_of,
)
from keras_drill.workbench.tasks.language_model.config import DataConfig
from keras_drill.workbench.tasks.language_model.run_vocabulary import LanguageModelVocabulary


def explain_text(
    options: DataConfig,
    run_vocabulary: LanguageModelVocabulary,
    valid: np.ndarray,
    train: Sequence[bytes],
) -> str:
    """Explains the preprocessing in one line, with the options, and warns about wrapped lines.

    Args:
        options: The options of the data.
        run_vocabulary: The vocabulary of the run.
        valid: Ids of the validation text.
        train: The beginning of the original training text.
    """
    named = {"lower-cased": "data.lowercase"}
    parts = [
        f"{change} ({named.get(change, 'data.tokenizer')})"
        for change in changes_of(run_vocabulary.tokenizer)
    ]
    if loses_indentation(train):
        parts.append("indentation lost (no tokenizer keeps it)")
    vocabulary = run_vocabulary.vocabulary
    unknown = share_of(valid, vocabulary.unknown_id, vocabulary.end_id)
    decides = "data.vocabulary" if options.vocabulary else "data.min_count, data.max_vocabulary"
    parts.append(f"{percent(unknown)} of the validation words unknown ({decides})")
    lengths = np.diff(np.flatnonzero(valid == vocabulary.end_id), prepend=-1)
    parts.append(
        f"median {options.unit} of {median_length(lengths)} words, at whose end generated texts "
        "end (data.unit)"
    )
    if options.unit == "line" and is_wrapped(train):
        print(
            "keras-drill: warning: the lines of the training text look wrapped, and each is "
            "learned as a text of its own; --data.unit paragraph joins lines up to an empty one",
            file=sys.stderr,
        )
    return f"text: {'; '.join(parts)}"
