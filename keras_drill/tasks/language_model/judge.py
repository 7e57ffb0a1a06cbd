"""How language models are judged, and what a report says of it."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import keras
import numpy as np
import tensorflow as tf

from keras_drill.analysis import collect_log_probs, compare_by_frequency
from keras_drill.data import ContiguousBatches, Tokenizer
from keras_drill.export import TextModel
from keras_drill.report.continuations_section import SampleContinuation, continuations_section
from keras_drill.report.frequency_section import frequency_section
from keras_drill.tasks.language_model.config import SamplesConfig
from keras_drill.tasks.language_model.words import LanguageModelWords
from keras_drill.tasks.task import Judgement

_PROMPT_WORDS = 3


@dataclasses.dataclass(frozen=True)
class LanguageModelJudgement(Judgement):
    """What is known of a language model that was judged.

    Args:
        perplexities: By split.
        scores: None.
        signatures: None.
        targets: Int array `[N]`, the words of the last split, in the order of the batches.
        log_probs: Float array `[N]`, their log-probabilities.
        samples: Continuations that the model wrote.
    """

    targets: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    log_probs: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    samples: tuple[SampleContinuation, ...] = ()


def judge(
    model: keras.Model,
    batches: Mapping[str, ContiguousBatches],
    samples: tuple[SampleContinuation, ...],
) -> LanguageModelJudgement:
    """Measures perplexities of texts.

    Args:
        model: The model.
        batches: The texts, by split.
        samples: What the model wrote.
    """
    perplexities: dict[str, float] = {}
    targets, log_probs = np.zeros(0, int), np.zeros(0)
    for split, each in batches.items():
        targets, log_probs = collect_log_probs(model, each.dataset())
        perplexities[split] = math.exp(-log_probs.mean(dtype=np.float64))
    return LanguageModelJudgement(
        perplexities,
        targets=targets,
        log_probs=log_probs,
        samples=samples,
    )


def beginnings(words: LanguageModelWords, ids: np.ndarray, number: int = 2) -> tuple[str, ...]:
    """The first words of lines of a text, of known words alone, spread evenly over it.

    Args:
        words: The words of the text.
        ids: The text.
        number: How many at most.
    """
    vocabulary = words.vocabulary
    ends = np.flatnonzero(ids == vocabulary.end_id)
    starts = np.concatenate([[0], ends + 1])[: len(ends)]
    starts = starts[ends - starts > _PROMPT_WORDS]
    rows = ids[starts[:, None] + np.arange(_PROMPT_WORDS)]
    rows = rows[(rows != vocabulary.unknown_id).all(axis=1)]
    chosen = rows[np.arange(number) * len(rows) // number] if len(rows) else rows
    texts = words.tokenizer.detokenize(vocabulary.words(chosen)).numpy().tolist()
    return tuple(dict.fromkeys(text.decode() for text in texts))


def write_samples(
    options: SamplesConfig, prompts: Sequence[str], tokenizer: Tokenizer, module: TextModel
) -> tuple[SampleContinuation, ...]:
    """Continuations of prompts.

    Args:
        options: How they are drawn.
        prompts: What to continue.
        tokenizer: That of the model.
        module: The model, with the sampler of the options.
    """
    texts = module.continue_text(tf.constant(prompts))["texts"].numpy()
    drawn = f"{options.sampler}, seed {options.seed}"
    return tuple(
        SampleContinuation(prompt, _added(tokenizer, prompt, text.decode()), drawn)
        for prompt, text in zip(prompts, texts, strict=True)
    )


def _added(tokenizer: Tokenizer, prompt: str, text: str) -> str:
    """What a text has after its prompt, with the space between them where there is one."""
    lines = tokenizer.detokenize(tokenizer.tokenize(prompt.split("\n"))).numpy()
    read = b"\n".join(lines).decode()  # the prompt as the tokenizer writes it
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(read, text, strict=False))
    return text[len(list(same)) :]


def report_sections(
    words: Sequence[LanguageModelWords], judged: Mapping[str, LanguageModelJudgement]
) -> list[ElementTree.Element]:
    """The other models against the first by word frequency, where they can be compared, and what
    they wrote."""
    names = list(judged)
    sections = []
    (first, of_first), *others = zip(words, judged.values(), strict=True)
    for index, (other, of_other) in enumerate(others, start=1):
        if (
            first.counts is None
            or other.tokens != first.tokens
            or not len(of_first.targets)
            or not np.array_equal(of_first.targets, of_other.targets)
        ):
            continue
        comparison = compare_by_frequency(
            of_first.targets,
            of_first.log_probs,
            of_other.log_probs,
            np.array(first.counts),
            names=(names[0], names[index]),
        )
        prefix = "frequency" if index == 1 else f"frequency-{index}"
        sections.append(frequency_section(comparison, 0, index, prefix=prefix))
    if any(each.samples for each in judged.values()):
        sections.append(
            continuations_section({name: each.samples for name, each in judged.items()})
        )
    return sections
