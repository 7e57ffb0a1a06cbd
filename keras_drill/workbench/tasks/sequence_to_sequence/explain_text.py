"""Explains the text preprocessing of an encoder–decoder."""

import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from keras_drill.data import EncodedText, ParallelText
from keras_drill.data.cut_text import signs_of_cut_text
from keras_drill.workbench.tasks.explain_text import (
    LINES_LOOKED_AT,
    changes_of,
    loses_indentation,
    median_length,
    percent,
    share_of,
)
from keras_drill.workbench.tasks.sequence_to_sequence.ceiling import Ceiling
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig
from keras_drill.workbench.tasks.sequence_to_sequence.run_vocabulary import (
    SequenceToSequenceVocabulary,
)


def explain_text(
    options: PairsConfig,
    run_vocabulary: SequenceToSequenceVocabulary,
    targets: EncodedText,
    valid: ParallelText,
    scoring: Mapping[str, Any],
) -> str:
    """Describes the preprocessing and its options in one or two lines.

    Args:
        options: Section `[data]`.
        run_vocabulary: The vocabulary of the run.
        targets: The targets of the validation text.
        valid: The original validation text.
        scoring: Arguments of `keras_drill.metrics.score_texts`.
    """
    references = [line.decode() for line in itertools.islice(iter(valid.target), LINES_LOOKED_AT)]
    named = {"lower-cased": "data.lowercase"}
    parts = [
        f"{change} ({named.get(change, 'data.unicode_normalization')})"
        for change in changes_of(run_vocabulary.target.tokenizer)
    ]
    if options.moses:
        parts.append("Moses tokenization (data.moses)")
    if loses_indentation([reference.encode() for reference in references]):
        parts.append("indentation is lost (no tokenizer keeps it)")
    vocabulary = run_vocabulary.target.vocabulary
    unknown = share_of(targets.ids, vocabulary.unknown_id, vocabulary.end_id)
    what = "words" if options.tokenizer in ("words", "whitespace") else "subwords"
    parts.append(
        f"{percent(unknown)} of the {what} in validation targets are unknown "
        f"(data.vocabulary_size); median length of a target: {median_length(targets)} {what}"
    )
    told = f"text: {'; '.join(parts)}"
    ceiling = Ceiling.measure(run_vocabulary.target, references, scoring)
    return told if ceiling.is_reached else f"{told}\nvalidation: {ceiling}"


def warn_of_cut_text(
    options: PairsConfig, tokenize: str, data: str, columns: Mapping[str, Sequence[bytes]]
) -> None:
    """Warns if texts seem to be tokenized already, but are read or scored as raw text.

    Args:
        options: Section `[data]`.
        tokenize: Tokenization of BLEU.
        data: Path of the texts.
        columns: The beginnings of the texts, by column.
    """
    signs = {name: signs_of_cut_text(lines) for name, lines in columns.items()}
    found = [f"the {name}s ({', '.join(told)})" for name, told in signs.items() if told]
    if not found or (options.tokenizer == "whitespace" and not options.moses):
        return
    advice = []
    if options.tokenizer in ("words", "wordpiece") or options.moses:
        advice.append("--data.tokenizer whitespace keeps the tokens of the texts")
    if signs.get("target") and tokenize != "none":
        advice.append("--decoding.tokenize none scores outputs without further tokenization")
    if advice:
        print(
            f"keras-drill: warning: {' and '.join(found)} in {data} look tokenized already, so "
            "BLEU cannot be compared with BLEU on raw text; " + "; ".join(advice),
            file=sys.stderr,
        )
