"""Finds the metrics of runs that can be compared, by their texts, tokenizers, vocabularies."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_drill.data.word_numbers import with_ends
from keras_drill.workbench.report.comparability import (
    Comparability,
    ComparableFigures,
    PerplexityBasis,
    differences,
)
from keras_drill.workbench.tasks.evaluation_text import EvaluationText
from keras_drill.workbench.tasks.task import Evaluation
from keras_drill.workbench.training.loaded_run import LoadedRun


def perplexity_basis(run: LoadedRun, text: EvaluationText) -> PerplexityBasis:
    """Returns the text, tokenizer and vocabulary that a perplexity of a run is based on.

    Args:
        run: The run.
        text: The text that the run was evaluated on.
    """
    digest = hashlib.sha256()
    for column in run.task.columns:
        for line in text.columns[column]:
            digest.update(line + b"\n")
        digest.update(b"\0")  # separates columns, as no line contains it
    tokenizer, vocabulary = run.task.coders(run.vocabulary)[run.task.columns[-1]]
    return PerplexityBasis(
        digest.hexdigest(),
        str(text.described),
        {"class": type(tokenizer).__name__, **tokenizer.get_config()},
        frozenset(vocabulary.tokens),
    )


def compare_bases(
    runs: Mapping[str, LoadedRun],
    texts: Mapping[str, Sequence[EvaluationText]],
    evaluated: Mapping[str, Evaluation],
) -> tuple[list[Comparability], dict[str, PerplexityBasis]]:
    """Determines which metrics of several runs can be compared.

    Args:
        runs: The runs by name.
        texts: The evaluation texts of each run, by name of the run.
        evaluated: The evaluation results of each run, by name of the run.

    Returns:
        One `Comparability` for each text that several runs were evaluated on, and the basis of the
        perplexity on the last text of each run.
    """
    bases = {
        name: {text.name: perplexity_basis(runs[name], text) for text in some}
        for name, some in texts.items()
    }
    compared = []
    for split in dict.fromkeys(text.name for some in texts.values() for text in some):
        having = {name: some[split] for name, some in bases.items() if split in some}
        found = differences(having)
        if len(having) < 2:
            continue
        is_same_text = len({basis.text for basis in having.values()}) == 1
        made = Comparability(split, list(having), found, is_same_text)
        if found and is_same_text:
            spelled = {
                name: _Spelled.of(runs[name], next(t for t in texts[name] if t.name == split))
                for name in having
            }
            log_probs = {name: evaluated[name].log_probs[split] for name in having}
            made = _with_figures(made, having, spelled, log_probs)
        compared.append(made)
    return compared, {name: list(some.values())[-1] for name, some in bases.items()}


class _Spelled(NamedTuple):
    """The targets of a text, encoded and decoded with a model's vocabulary.

    Args:
        digest: Digest of the decoded targets, with unknown tokens in place of unknown words.
        num_bytes: Number of bytes of the original text, with one line end per line.
        is_unknown: Bool `[N]`, True for targets that are the unknown token.
        is_replaced: Bool `[N]`, True for unknown tokens that stand for another word of the text.
    """

    digest: str
    num_bytes: int
    is_unknown: np.ndarray
    is_replaced: np.ndarray

    @classmethod
    def of(cls, run: LoadedRun, text: EvaluationText) -> "_Spelled":
        """Encodes and decodes the targets of a text with the vocabulary of a run."""
        column = run.task.columns[-1]
        tokenizer, vocabulary = run.task.coders(run.vocabulary)[column]
        digest, num_bytes = hashlib.sha256(), 0
        unknown: list[np.ndarray] = []
        replaced: list[np.ndarray] = []
        for block in text.columns[column].tensors():
            words = tokenizer.tokenize(block)  # [L, (T)]
            ids, lengths = vocabulary.ids(words.flat_values), words.row_lengths().numpy()
            is_unknown = ids.numpy() == vocabulary.unknown_id
            is_word = words.flat_values.numpy() != vocabulary.unknown_token.encode()
            for flags, found in ((is_unknown, unknown), (is_unknown & is_word, replaced)):
                found.append(with_ends(flags.astype(np.int32), lengths, 0)[0] != 0)
            read = tokenizer.detokenize(words.with_flat_values(vocabulary.words(ids)))
            for line in read.numpy():
                digest.update(line + b"\n")
            num_bytes += sum(len(line) + 1 for line in block.numpy())
        return cls(digest.hexdigest(), num_bytes, np.concatenate(unknown), np.concatenate(replaced))


def _with_figures(
    made: Comparability,
    bases: Mapping[str, PerplexityBasis],
    spelled: Mapping[str, _Spelled],
    log_probs: Mapping[str, np.ndarray],
) -> Comparability:
    """Returns `made` with metrics that can be compared although the perplexities cannot."""
    known = None
    if len({basis.tokenizer_key for basis in bases.values()}) == 1:
        known = ~np.any([each.is_unknown for each in spelled.values()], axis=0)
    num_known = 0 if known is None else int(known.sum())
    figures = {}
    for name, each in spelled.items():
        values = log_probs[name].astype(np.float64)
        figures[name] = ComparableFigures(
            bits_per_byte=-values.sum() / math.log(2) / each.num_bytes,
            unknown=float(each.is_replaced.mean()),
            known_perplexity=math.exp(-values[known].mean()) if num_known else None,
        )
    return Comparability(
        made.name,
        made.runs,
        made.differences,
        figures=figures,
        is_spelled_alike=len({each.digest for each in spelled.values()}) == 1,
        known_targets=num_known,
    )
