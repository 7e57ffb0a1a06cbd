"""The report's section of texts that the models wrote."""

from collections.abc import Sequence
from xml.etree import ElementTree

from keras_drill.report.elements import element
from keras_drill.report.palette import point_key
from keras_drill.report.run_summary import RunSummary


def samples_section(runs: Sequence[RunSummary]) -> ElementTree.Element:
    """Continuations, those of one prompt side by side."""
    prompts = dict.fromkeys(sample.prompt for run in runs for sample in run.samples)
    groups = [
        element(
            "div",
            *(
                _card(index, run, sample)
                for index, run in enumerate(runs)
                for sample in run.samples
                if sample.prompt == prompt
            ),
            class_="cards",
        )
        for prompt in prompts
    ]
    return element("section", element("h2", "Continuations"), *groups)


def _card(index, run, sample) -> ElementTree.Element:
    text = element("p", element("strong", sample.prompt), sample.continuation, dir="auto")
    origin = element("figcaption", point_key(index), element("bdi", run.name), class_="origin")
    if sample.sampler:
        origin.append(element("span", sample.sampler, class_="sampler"))
    return element("figure", element("blockquote", text), origin, class_="card")
