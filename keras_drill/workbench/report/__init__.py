"""Self-contained HTML pages about training runs."""

from keras_drill.workbench.report.continuations_section import (
    SampleContinuation,
    continuations_section,
)
from keras_drill.workbench.report.evaluated_text import EvaluatedText
from keras_drill.workbench.report.facts_sections import describe_environment
from keras_drill.workbench.report.frequency_section import frequency_section
from keras_drill.workbench.report.output_layer_sections import RunAnalysis
from keras_drill.workbench.report.run_summary import RunSummary
from keras_drill.workbench.report.sense_sections import SenseStudy
from keras_drill.workbench.report.studied_word_section import StudiedWord
from keras_drill.workbench.report.write_pages import write_analysis, write_report, write_senses

__all__ = [
    "EvaluatedText",
    "RunAnalysis",
    "RunSummary",
    "SampleContinuation",
    "SenseStudy",
    "StudiedWord",
    "continuations_section",
    "describe_environment",
    "frequency_section",
    "write_analysis",
    "write_report",
    "write_senses",
]
