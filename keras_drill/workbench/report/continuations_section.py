"""The report's section with continuations that language models generated."""

import dataclasses
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import direction, element, running_text
from keras_drill.workbench.report.page.plot import point_key


@dataclasses.dataclass(frozen=True)
class SampleContinuation:
    """A prompt and what a model wrote after it.

    Args:
        prompt: The text given to the model; the report shows it in bold.
        continuation: The text that the model added, without the prompt. The page shows it directly
            after the prompt, so it must include a space at its beginning if one is needed.
        sampler: Description of the sampling, for example `"top-p 0.9, temperature 0.8, seed 3"`.
    """

    prompt: str
    continuation: str
    sampler: str = ""


def continuations_section(
    continuations: Mapping[str, Sequence[SampleContinuation]],
) -> ElementTree.Element:
    """Builds the section with continuations. It shows continuations of a prompt side by side.

    Args:
        continuations: The continuations of each run, by the run's name, in the order of the runs on
            the page.
    """
    prompts = dict.fromkeys(each.prompt for written in continuations.values() for each in written)
    groups = [
        element(
            "div",
            *(
                _card(index, name, each)
                for index, (name, written) in enumerate(continuations.items())
                for each in written
                if each.prompt == prompt
            ),
            class_="cards",
        )
        for prompt in prompts
    ]
    return element("section", element("h2", "Continuations"), *groups)


def _card(index: int, name: str, written: SampleContinuation) -> ElementTree.Element:
    text = element(
        "p",
        element("strong", *running_text(written.prompt)),
        *running_text(written.continuation),
        dir=direction(written.prompt + written.continuation),
    )
    origin = element("figcaption", point_key(index), element("bdi", name), class_="origin")
    if written.sampler:
        origin.append(element("span", written.sampler, class_="sampler"))
    return element("figure", element("blockquote", text), origin, class_="card")
