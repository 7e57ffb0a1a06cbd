"""Compares two models by the log-probabilities that they give to the same examples."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from keras_drill.workbench.analysis import compare_by_frequency
from keras_drill.workbench.analysis.compare_by_frequency import FrequencyComparison
from keras_drill.workbench.analysis.gains import Gain, log_prob_gain
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.evaluate_examples import EvaluatedExamples

_BLOCK = 20
_BIN_CONFIDENCE = 0.99  # stricter than 95 %: one of several bins must not refuse a model by chance


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The gain of a candidate model over a baseline.

    Args:
        unit: Unit of the mean log-probabilities: "word", or "byte" if the models tokenize the text
            differently.
        perplexity: Perplexity of the candidate, per unit.
        baseline_perplexity: Perplexity of the baseline on the same units.
        gain: Gain in log-probability per unit.
        lines_left_out: Number of lines with unknown words that the comparison skips, see `compare`.
        unknown: Percentage of the words that are not in the candidate's vocabulary.
        baseline_unknown: Percentage of the words that are not in the baseline's vocabulary.
        frequency: The comparison by the frequency of words in the training text; `None` if the
            units are bytes.
    """

    unit: str
    perplexity: float
    baseline_perplexity: float
    gain: Gain
    lines_left_out: int
    unknown: float
    baseline_unknown: float
    frequency: FrequencyComparison | None


def compare(
    candidate: EvaluatedExamples,
    baseline: EvaluatedExamples,
    texts: Sequence[bytes],
    counts: Mapping[bytes, int],
    unknown: bytes,
) -> Comparison:
    """Compares two models on the words that are in both vocabularies.

    A model with a small vocabulary would have an unfair advantage, because `<unk>` is probable.
    Therefore words that are unknown to one of the models are ignored. Their percentage is reported
    separately.

    Models that tokenize the text differently are compared by the log-probabilities of whole lines,
    per byte. The log-probability of `<unk>` does not include the spelling of the unknown word, so
    lines with unknown words are skipped.

    Args:
        candidate: The candidate's results on the examples.
        baseline: The baseline's results on the same examples.
        texts: The evaluated texts, one for each line.
        counts: Number of times that each word of the candidate's vocabulary occurs in the training
            text.
        unknown: The token for unknown words.
    """
    is_unknown, was_unknown = (each.words == unknown for each in (candidate, baseline))
    shares = 100 * float(is_unknown.mean()), 100 * float(was_unknown.mean())
    lines = len(texts)
    if np.array_equal(candidate.lengths, baseline.lengths):
        known = ~is_unknown & ~was_unknown
        if not known.any():
            raise RunError(
                "the models cannot be compared, because no word of the examples is in both "
                "vocabularies; give more examples, or serve the new model under another name"
            )
        if np.array_equal(candidate.words[known], baseline.words[known]):
            line_of_word = np.repeat(np.arange(lines), candidate.lengths)[known]
            ours, theirs = candidate.log_probs[known], baseline.log_probs[known]
            return Comparison(
                "word",
                math.exp(-ours.mean()),
                math.exp(-theirs.mean()),
                log_prob_gain(
                    np.bincount(line_of_word, ours - theirs, lines),
                    np.bincount(line_of_word, minlength=lines),
                ),
                0,
                *shares,
                _by_frequency(candidate.words[known], ours, theirs, counts),
            )
    spelled = _spelled_lines(candidate, is_unknown) & _spelled_lines(baseline, was_unknown)
    return _per_byte(candidate, baseline, texts, spelled, shares)


def _per_byte(
    candidate: EvaluatedExamples,
    baseline: EvaluatedExamples,
    texts: Sequence[bytes],
    spelled: np.ndarray,
    shares: tuple[float, float],
) -> Comparison:
    """Compares two models per byte, on the lines for which `spelled` (bool `[lines]`) is true."""
    if not spelled.any():
        raise RunError(
            "the models cannot be compared, because they tokenize the text differently, and no "
            "line of the examples consists of words in both vocabularies; give more examples, or "
            "serve the new model under another name"
        )
    num_bytes = np.array([len(text) + 1 for text in texts])[spelled]  # 1 for the end of the line
    ours, theirs = (each.line_log_probs[spelled] for each in (candidate, baseline))
    return Comparison(
        "byte",
        math.exp(-ours.sum() / num_bytes.sum()),
        math.exp(-theirs.sum() / num_bytes.sum()),
        log_prob_gain(ours - theirs, num_bytes),
        int((~spelled).sum()),
        *shares,
        None,
    )


def _spelled_lines(evaluated: EvaluatedExamples, is_unknown: np.ndarray) -> np.ndarray:
    """Returns whether all words of each line are in the model's vocabulary, bool `[lines]`."""
    line_of_word = np.repeat(np.arange(len(evaluated.lengths)), evaluated.lengths)
    return np.bincount(line_of_word, is_unknown, len(evaluated.lengths)) == 0


def unigram_model(evaluated: EvaluatedExamples, counts: Mapping[bytes, int]) -> EvaluatedExamples:
    """Returns the results of a unigram model with add-one smoothing on the same words.

    Args:
        evaluated: Results of another model, which contain the words.
        counts: Number of times that each word of the vocabulary occurs in the training text.
    """
    total = sum(counts.values()) + len(counts)
    log_probs = [math.log((counts.get(word, 0) + 1) / total) for word in evaluated.words]
    return dataclasses.replace(evaluated, log_probs=np.array(log_probs))


def _by_frequency(
    words: np.ndarray, ours: np.ndarray, theirs: np.ndarray, counts: Mapping[bytes, int]
) -> FrequencyComparison:
    names, ids = np.unique(words.astype(bytes), return_inverse=True)
    in_training = np.array([counts.get(bytes(name), 0) for name in names])
    return compare_by_frequency(
        ids,
        theirs,
        ours,
        in_training,
        names=("served", "candidate"),
        block_size=_BLOCK,
        confidence=_BIN_CONFIDENCE,
    )
