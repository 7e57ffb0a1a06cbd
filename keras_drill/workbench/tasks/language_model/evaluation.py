"""Evaluation of language models, and its sections in reports."""

import dataclasses
import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import tensorflow as tf

from keras_drill.export import TextCodec, TextModel
from keras_drill.workbench.analysis import compare_by_frequency
from keras_drill.workbench.report.comparability import PerplexityBasis, frequency_obstacle
from keras_drill.workbench.report.continuations_section import (
    SampleContinuation,
    continuations_section,
)
from keras_drill.workbench.report.frequency_section import frequency_section, no_frequency_section
from keras_drill.workbench.tasks.language_model.config import SamplesConfig
from keras_drill.workbench.tasks.language_model.run_vocabulary import LanguageModelVocabulary
from keras_drill.workbench.tasks.task import Evaluation

_PROMPT_WORDS = 3


@dataclasses.dataclass(frozen=True)
class LanguageModelEvaluation(Evaluation):
    """Evaluation results of a language model.

    Args:
        perplexities: Perplexities by split.
        scores: Empty, since language models have no other metrics.
        signatures: Empty.
        log_probs: Log-probabilities of the targets of each text, in the order of the text.
        notes: Description of the model's adaptation to the texts, if any.
        targets: Int array `[N]`, the targets of the last text, in order.
        samples: Continuations that the model generated.
        adaptation: Settings of the adaptation to the texts, JSON-serializable; empty without
            adaptation.
    """

    targets: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    samples: tuple[SampleContinuation, ...] = ()
    adaptation: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        adaptation = {"adaptation": dict(self.adaptation)} if self.adaptation else {}
        return {**super().figures(), **adaptation}


def beginnings(
    run_vocabulary: LanguageModelVocabulary, ids: np.ndarray, number: int = 2
) -> tuple[str, ...]:
    """Selects beginnings of lines without unknown words, spread evenly over a text.

    Args:
        run_vocabulary: The vocabulary of the text.
        ids: Ids of the text.
        number: Maximum number of beginnings.
    """
    vocabulary = run_vocabulary.vocabulary
    ends = np.flatnonzero(ids == vocabulary.end_id)
    starts = np.concatenate([[0], ends + 1])[: len(ends)]
    starts = starts[ends - starts > _PROMPT_WORDS]
    rows = ids[starts[:, None] + np.arange(_PROMPT_WORDS)]
    rows = rows[(rows != vocabulary.unknown_id).all(axis=1)]
    chosen = rows[np.arange(number) * len(rows) // number] if len(rows) else rows
    texts = run_vocabulary.tokenizer.detokenize(vocabulary.words(chosen)).numpy().tolist()
    return tuple(dict.fromkeys(text.decode() for text in texts))


def write_samples(
    options: SamplesConfig, prompts: Sequence[str], module: TextModel
) -> tuple[SampleContinuation, ...]:
    """Generates continuations of prompts.

    Args:
        options: Section `[samples]`.
        prompts: The prompts.
        module: The model, with the sampler of `options`.
    """
    texts = module.continue_text(tf.constant(prompts))["texts"].numpy()
    drawn = f"{options.sampler}, seed {options.seed}"
    return tuple(
        SampleContinuation(prompt, _added(module.codec, prompt, text.decode()), drawn)
        for prompt, text in zip(prompts, texts, strict=True)
    )


def _added(codec: TextCodec, prompt: str, text: str) -> str:
    """Returns the part of a text after its prompt, including the space that separates them."""
    (read,) = codec.join(codec.words_of_prompts([prompt])).numpy()
    read = read.decode()  # the prompt as the tokenizer writes it
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(read, text, strict=False))
    return text[len(list(same)) :]


def report_sections(
    counts: Sequence[int] | None,
    evaluated: Mapping[str, LanguageModelEvaluation],
    bases: Mapping[str, PerplexityBasis],
) -> list[ElementTree.Element]:
    """Builds two report sections: a comparison by word frequency, and continuations.

    Each model is compared with the first one.

    Args:
        counts: Counts of the first model's words in its training text; `None` if unknown.
        evaluated: The models by name.
        bases: The `PerplexityBasis` of each model's last perplexity.
    """
    sections = []
    first, *others = evaluated
    for index, other in enumerate(others, start=1):
        reason = frequency_obstacle(bases[first], bases[other], (first, other), counts)
        if reason is not None:
            warn = f"keras-drill: warning: {first} and {other} cannot be compared by word frequency"
            print(f"{warn}: {reason}", file=sys.stderr)
            sections.append(no_frequency_section(first, other, reason))
            continue
        ours, theirs = (list(evaluated[name].log_probs.values())[-1] for name in (first, other))
        comparison = compare_by_frequency(
            evaluated[first].targets,
            ours,
            theirs,
            np.array(counts),
            names=(first, other),
        )
        prefix = "frequency" if index == 1 else f"frequency-{index}"
        sections.append(frequency_section(comparison, 0, index, prefix=prefix))
    if any(each.samples for each in evaluated.values()):
        sections.append(
            continuations_section({name: each.samples for name, each in evaluated.items()})
        )
    return sections
