"""Two models on the same examples: what each says, and what the first gains over the second."""

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
_BIN_CONFIDENCE = 0.99  # there are several bins, and none should refuse a model by chance


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What a candidate gains over a baseline.

    Args:
        unit: What log-probabilities are means over: "word", or "byte" where the two cut the text
            into different words.
        perplexity: Of the candidate, per unit.
        baseline_perplexity: Of the baseline, on the same units.
        gain: In log-probability per unit.
        lines_left_out: Number of lines that are not compared, see `compare`.
        unknown: Percentage of the words that the candidate does not know.
        baseline_unknown: Percentage that the baseline does not know.
        frequency: By how often words occur in the training text; `None` where units are bytes.
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
    """Compares two models on the words that both know.

    A model that knows few words has an easy life: `<unk>` is probable. So words that one of the two
    does not know are left out, and how many those are is told beside. Models that cut the text in
    different ways are compared by whole lines, per byte. A model is not charged for the spelling of
    a word that it does not know, so lines with such a word are left out.

    Args:
        candidate: What the candidate says.
        baseline: What the baseline says of the same examples.
        texts: What was evaluated, a line each.
        counts: How often each word of the candidate occurs in the training text.
        unknown: The word that stands for those that are not known.
    """
    is_unknown, was_unknown = (each.words == unknown for each in (candidate, baseline))
    shares = 100 * float(is_unknown.mean()), 100 * float(was_unknown.mean())
    lines = len(texts)
    if np.array_equal(candidate.lengths, baseline.lengths):
        known = ~is_unknown & ~was_unknown
        if not known.any():
            raise RunError("there is no word in the examples that both models know")
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
    """Compares two models by whole lines, those that `spelled` names, bool `[lines]`."""
    if not spelled.any():
        raise RunError(
            "the two models cut the text into different words, and there is no line in the "
            "examples of which both know all: nothing can be compared; give more examples, or "
            "serve the new model under another name"
        )
    num_bytes = np.array([len(text) + 1 for text in texts])[spelled]  # and the end of the line
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
    """Which lines have no word that the model does not know, bool `[lines]`."""
    line_of_word = np.repeat(np.arange(len(evaluated.lengths)), evaluated.lengths)
    return np.bincount(line_of_word, is_unknown, len(evaluated.lengths)) == 0


def unigram_model(evaluated: EvaluatedExamples, counts: Mapping[bytes, int]) -> EvaluatedExamples:
    """What a model says that knows nothing but how often words occur, each one time more often.

    Args:
        evaluated: The words to say it of.
        counts: How often each word that there is occurs in the training text.
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
