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
    """Describes the preprocessing and its options in one line; warns if lines look wrapped.

    Args:
        options: Section `[data]`.
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
        parts.append("indentation is lost (no tokenizer keeps it)")
    vocabulary = run_vocabulary.vocabulary
    unknown = share_of(valid, vocabulary.unknown_id, vocabulary.end_id)
    decides = "data.vocabulary" if options.vocabulary else "data.min_count, data.max_vocabulary"
    parts.append(f"{percent(unknown)} of the validation words are unknown ({decides})")
    lengths = np.diff(np.flatnonzero(valid == vocabulary.end_id), prepend=-1)
    parts.append(
        f"median length of a {options.unit}: {median_length(lengths)} words; generated texts end "
        f"with a {options.unit} (data.unit)"
    )
    if options.unit == "line" and is_wrapped(train):
        print(
            "keras-drill: warning: the lines of the training text look wrapped, and the model "
            "learns each line as a separate text; --data.unit paragraph joins the lines of a "
            "paragraph",
            file=sys.stderr,
        )
    return f"text: {'; '.join(parts)}"
