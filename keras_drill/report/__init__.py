"""Self-contained HTML pages about training runs."""

from keras_drill.report.describe_environment import describe_environment
from keras_drill.report.run_analysis import RunAnalysis
from keras_drill.report.run_summary import RunSummary
from keras_drill.report.sample_continuation import SampleContinuation
from keras_drill.report.sense_study import SenseStudy
from keras_drill.report.studied_word import StudiedWord
from keras_drill.report.write_analysis import write_analysis
from keras_drill.report.write_report import write_report
from keras_drill.report.write_senses import write_senses

__all__ = [
    "RunAnalysis",
    "RunSummary",
    "SampleContinuation",
    "SenseStudy",
    "StudiedWord",
    "describe_environment",
    "write_analysis",
    "write_report",
    "write_senses",
]
