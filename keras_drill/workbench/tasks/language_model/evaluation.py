"""How language models are evaluated, and what a report says of it."""

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
    """What is known of a language model that was evaluated.

    Args:
        perplexities: By split.
        scores: None.
        signatures: None.
        log_probs: By text, the log-probability of each target, in the order of the text.
        notes: How the model adapted to the texts, where it did.
        targets: Int array `[N]`, the targets of the last text, in its order.
        samples: Continuations that the model wrote.
        adaptation: How the model adapted to the texts, JSON-able; empty where it did not.
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
    """The first words of lines of a text, of known words alone, spread evenly over it.

    Args:
        run_vocabulary: The words of the text.
        ids: The text.
        number: How many at most.
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
    """Continuations of prompts.

    Args:
        options: How they are drawn.
        prompts: What to continue.
        module: The model, with the sampler of the options.
    """
    texts = module.continue_text(tf.constant(prompts))["texts"].numpy()
    drawn = f"{options.sampler}, seed {options.seed}"
    return tuple(
        SampleContinuation(prompt, _added(module.codec, prompt, text.decode()), drawn)
        for prompt, text in zip(prompts, texts, strict=True)
    )


def _added(codec: TextCodec, prompt: str, text: str) -> str:
    """What a text has after its prompt, with the space between them where there is one."""
    (read,) = codec.join(codec.words_of_prompts([prompt])).numpy()
    read = read.decode()  # the prompt as the tokenizer writes it
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(read, text, strict=False))
    return text[len(list(same)) :]


def report_sections(
    counts: Sequence[int] | None,
    evaluated: Mapping[str, LanguageModelEvaluation],
    bases: Mapping[str, PerplexityBasis],
) -> list[ElementTree.Element]:
    """The other models against the first by word frequency, or why not, and what they wrote.

    Args:
        counts: How often the words of the first model occur in its training text.
        evaluated: The models by name.
        bases: What the last perplexity of each depends on.
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
