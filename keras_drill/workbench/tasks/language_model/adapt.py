"""Evaluation of a language model that adapts to the text: dynamic evaluation, neural cache."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_drill.models import DynamicEvaluator, gradient_mean_squares, with_batch_size
from keras_drill.models.neural_cache import cache_log_probs, mix_cache
from keras_drill.workbench.analysis.collect import collect_hidden, collect_log_probs, in_text_order
from keras_drill.workbench.tasks.adaptation import Adaptation
from keras_drill.workbench.tasks.errors import RunError

# Number of training tokens for the mean squared gradients of the RMS rule.
_STATISTICS_TOKENS = 100_000
_FIRST_RATES = {"rms": 1e-4, "sgd": 0.1}
_FIRST_DECAY = 1e-3
_FACTOR = math.sqrt(10)  # between values that are tried
_MOST_TRIALS = 8  # of one parameter
_CACHE_SIZES = (100, 500, 2000)
# Exponents that a hidden state of average size has with itself.
_CACHE_EXPONENTS = (0.5, 1, 2, 4, 8, 16, 32)
_CACHE_WEIGHTS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)


class _Reading(NamedTuple):
    """Log-probabilities and hidden states of all targets of a text, in the order of the text.

    Without a cache, the hidden states are `None`.
    """

    log_probs: np.ndarray
    hidden: Any

    @property
    def perplexity(self) -> float:
        return perplexity_of(self.log_probs)


class Adapted(NamedTuple):
    """Result of `adapt`.

    Attributes:
        log_probs: Log-probabilities of the targets, by text.
        settings: Settings of dynamic evaluation and of the cache, JSON-serializable.
        notes: Description of the settings for the user.
    """

    log_probs: dict[str, np.ndarray]
    settings: dict[str, Any]
    notes: list[str]


def perplexity_of(log_probs: np.ndarray) -> float:
    """Computes the perplexity of a text from the log-probabilities of its targets."""
    return math.exp(-log_probs.mean(dtype=np.float64))


def adapt(
    task: Any,
    model: keras.Model,
    run_vocabulary: Any,
    texts: Mapping[str, np.ndarray],
    options: Adaptation,
) -> Adapted:
    """Evaluates a model that adapts to texts. The model itself does not change.

    Args:
        task: The language model task of a run.
        model: The model of the run.
        run_vocabulary: The vocabulary of the run.
        texts: The texts by name.
        options: Settings of the adaptation.

    Raises:
        RunError: The cache is not shorter than every text, or there is no validation text on which
            missing parameters can be chosen.
    """
    _check_cache(texts, options)
    training = functools.cache(lambda: task.read_texts(run_vocabulary))
    searched = functools.cache(lambda: _search_text(task, training(), options))
    settings: dict[str, Any] = {}
    notes = []
    read: Callable[[np.ndarray], _Reading]
    read = functools.partial(_read, task, model, run_vocabulary, keep_hidden=options.has_cache)
    if options.rule is not None:
        read, settings["dynamic"] = _dynamic_reader(
            task, model, run_vocabulary, training, searched, options
        )
        notes.append(_describe_dynamic(settings["dynamic"]))
    add_cache = None
    if options.has_cache:
        shortest = min(map(len, texts.values()))
        add_cache, settings["cache"] = _cache(read, searched, shortest, options)
        notes.append(
            "neural cache: size {size:,}, theta {theta:g}, weight {weight:g}".format(
                **settings["cache"]
            )
        )
    chosen = [name for each in settings.values() for name in each["chosen"]]
    if chosen:
        notes.append(
            f"chosen on the first {len(searched()):,} tokens of the validation text: "
            f"{', '.join(chosen).replace('_', ' ')}"
        )
    log_probs = {}
    for name, text in texts.items():
        reading = read(text)
        log_probs[name] = reading.log_probs if add_cache is None else add_cache(text, reading)
    return Adapted(log_probs, settings, notes)


def _check_cache(texts: Mapping[str, np.ndarray], options: Adaptation) -> None:
    if not options.has_cache:
        return
    size = options.cache_size or 1
    for name, text in texts.items():
        if size >= len(text):
            raise RunError(
                "--cache-size must be smaller than the number of tokens of every text; the text "
                f"{name} has {len(text):,} tokens. Received: {size:,}"
            )


def _search_text(task: Any, training: Mapping[str, Any], options: Adaptation) -> np.ndarray:
    if "valid" not in training:
        raise RunError(
            "the corpus of the run has no validation text on which missing settings of --dynamic "
            "and --cache can be chosen: give all settings. "
            f"Received: a corpus with {', '.join(training)}"
        )
    text = task.first_tokens(training["valid"], options.search_tokens)
    if options.has_cache and (options.cache_size or 1) >= len(text):
        raise RunError(
            "--cache-size must be smaller than the number of validation tokens on which settings "
            "are chosen: give a smaller --cache-size or more --search-tokens. "
            f"Received: a cache of {options.cache_size or 1:,} and {len(text):,} tokens"
        )
    return text


def _read(
    task: Any, model: keras.Model, run_vocabulary: Any, text: np.ndarray, keep_hidden: bool
) -> _Reading:
    """Computes log-probabilities of a text with the trained weights."""
    places = task.target_places(run_vocabulary, text)
    batches = task.evaluation_batches(run_vocabulary, text).dataset()
    hidden = None
    if keep_hidden:
        hidden = in_text_order(collect_hidden(model, batches)[2], places)
    return _Reading(in_text_order(collect_log_probs(model, batches)[1], places), hidden)


def _dynamic_reader(
    task: Any,
    model: keras.Model,
    run_vocabulary: Any,
    training: Callable,
    searched: Callable[[], np.ndarray],
    options: Adaptation,
) -> tuple[Callable[[np.ndarray], _Reading], dict[str, Any]]:
    """Returns a function that evaluates a text while learning from it, and the settings used."""
    rule = options.rule or "rms"
    means, statistics_tokens = None, 0
    if rule == "rms":
        text = task.first_tokens(training()["train"], _STATISTICS_TOKENS)
        statistics_tokens = len(text)
        batches = task.evaluation_batches(run_vocabulary, text, length=options.length)
        means = gradient_mean_squares(model, batches.dataset())
    evaluator = DynamicEvaluator(with_batch_size(model, options.rows), means)

    def read(text: np.ndarray, rate: float, decay: float, keep_hidden: bool) -> _Reading:
        shape = {"rows": options.rows, "length": options.length}
        batches = task.evaluation_batches(run_vocabulary, text, **shape)
        found = evaluator.evaluate(batches.dataset(), rate, decay, keep_hidden)
        places = task.target_places(run_vocabulary, text, **shape)
        hidden = None if found.hidden is None else in_text_order(found.hidden, places)
        return _Reading(in_text_order(found.log_probs, places), hidden)

    def loss(rate: float, decay: float) -> float:
        perplexity = read(searched(), rate, decay, False).perplexity
        print(
            f"dynamic evaluation ({rule}): learning rate {rate:g}, decay {decay:g}: "
            f"validation perplexity {perplexity:.2f}",
            flush=True,
        )
        return perplexity

    rate, decay, chosen = options.learning_rate, options.decay, []
    if rate is None:
        first = _FIRST_DECAY if decay is None else decay
        rate = climb(lambda value: loss(value, first), _FIRST_RATES[rule])
        chosen.append("learning_rate")
    if decay is None:
        known = rate
        decay = climb(lambda value: loss(known, value), _FIRST_DECAY, at_most=1.0)
        chosen.append("decay")
    settings = {
        "rule": rule,
        "learning_rate": rate,
        "decay": decay,
        "epsilon": evaluator.epsilon if rule == "rms" else None,
        "length": options.length,
        "rows": options.rows,
        "statistics_tokens": statistics_tokens,
        "chosen": chosen,
    }
    keep = options.has_cache
    return lambda text: read(text, rate, decay, keep), settings


def _describe_dynamic(settings: Mapping[str, Any]) -> str:
    told = (
        "dynamic evaluation ({rule}): learning rate {learning_rate:g}, decay {decay:g}, segments "
        "of {length} tokens, rows: {rows}".format(**settings)
    )
    if settings["statistics_tokens"]:
        told += f", gradient statistics of {settings['statistics_tokens']:,} training tokens"
    return told


def climb(loss: Callable[[float], float], first: float, at_most: float = math.inf) -> float:
    """Minimizes a loss over a positive parameter, by multiplying and dividing a first value.

    A loss that is NaN counts as infinite: the model has diverged.

    Example:

    >>> climb(lambda value: abs(value - 0.03), 1e-3)
    0.0316
    >>> climb(lambda value: math.nan if value > 2e-3 else abs(value - 1e-3), 1e-2)
    0.000999
    """

    def measure(value: float) -> float:
        found = loss(value)
        return math.inf if math.isnan(found) else found

    best, least, trials = first, measure(first), 1
    for factor in (_FACTOR, 1 / _FACTOR):
        start = best
        while trials < _MOST_TRIALS:
            value = min(float(f"{best * factor:.3g}"), at_most)
            found = measure(value)
            trials += 1
            has_diverged = least == math.inf and factor < 1  # smaller values may not diverge
            if not (found < least or has_diverged):
                break
            best, least = value, found
        if best != start:
            break
    return best


def _cache(
    read: Callable[[np.ndarray], _Reading],
    searched: Callable[[], np.ndarray],
    shortest: int,
    options: Adaptation,
) -> tuple[Callable[[np.ndarray, _Reading], np.ndarray], dict[str, Any]]:
    """Returns a function that adds the cache to an evaluation, and the settings of the cache."""
    given: dict[str, Any] = {
        "size": options.cache_size,
        "theta": options.cache_theta,
        "weight": options.cache_weight,
    }
    chosen = [name for name, value in given.items() if value is None]
    if chosen:
        text = searched()
        reading = read(text)
        hidden = np.asarray(reading.hidden, "float64")
        square = np.square(hidden).sum(axis=1).mean() or 1.0
        longest = min(shortest, len(text)) - 1
        tried: dict[str, Any] = {
            "size": sorted({min(size, longest) for size in _CACHE_SIZES}),
            "theta": [float(f"{exponent / square:.3g}") for exponent in _CACHE_EXPONENTS],
            "weight": _CACHE_WEIGHTS,
        }
        values = [tried[name] if given[name] is None else [given[name]] for name in given]
        results = {}
        for size, theta in itertools.product(*values[:2]):
            cached = cache_log_probs(hidden, text, size, theta)
            for weight in values[2]:
                mixed = mix_cache(reading.log_probs.astype("float64"), cached, weight)
                results[size, theta, weight] = mixed.mean()
        best = max(results, key=results.__getitem__)
        given = dict(zip(given, best, strict=True))
    size, theta, weight = given.values()

    def add(text: np.ndarray, reading: _Reading) -> np.ndarray:
        cached = cache_log_probs(reading.hidden, text, size, theta)
        return mix_cache(reading.log_probs.astype("float64"), cached, weight)

    return add, {**given, "chosen": chosen}
