"""The page of `keras-drill senses`."""

import os
import pathlib
from collections.abc import Mapping

from keras_drill.report.configuration_section import environment_section
from keras_drill.report.sense_sections import (
    kernel_section,
    theta_section,
    words_by_senses_section,
)
from keras_drill.report.sense_study import SenseStudy
from keras_drill.report.studied_word_section import studied_word_section
from keras_drill.report.write_page import write_page


def write_senses(
    path: str | os.PathLike, study: SenseStudy, environment: Mapping[str, str] | None = None
) -> pathlib.Path:
    """Writes one self-contained HTML page about the senses of a model and returns its path.

    Args:
        path: The HTML file; replaced when it exists.
        study: The senses.
        environment: What the study ran on, from `describe_environment(...)`.
    """
    sections = [words_by_senses_section(study)]
    if study.theta is not None:
        sections += [theta_section(study), kernel_section(study)]
    sections += [
        studied_word_section(word, f"word-{number}") for number, word in enumerate(study.words)
    ]
    if environment:
        sections.append(environment_section(environment))
    summary = (
        f"{study.name} ({study.output_layer}) has {study.mean_senses:.2f} senses per word. "
        f"Words were looked at in {study.text}."
    )
    return write_page(path, "Senses of words", summary, sections)
