"""Self-contained HTML pages about training runs."""

from keras_drill.report.describe_environment import describe_environment
from keras_drill.report.run_analysis import RunAnalysis
from keras_drill.report.run_summary import RunSummary
from keras_drill.report.sample_continuation import SampleContinuation
from keras_drill.report.write_analysis import write_analysis
from keras_drill.report.write_report import write_report

__all__ = [
    "RunAnalysis",
    "RunSummary",
    "SampleContinuation",
    "describe_environment",
    "write_analysis",
    "write_report",
]
