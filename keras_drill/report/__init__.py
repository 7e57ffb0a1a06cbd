"""One self-contained HTML page about training runs."""

from keras_drill.report.describe_environment import describe_environment
from keras_drill.report.run_summary import RunSummary
from keras_drill.report.sample_continuation import SampleContinuation
from keras_drill.report.write_report import write_report

__all__ = ["RunSummary", "SampleContinuation", "describe_environment", "write_report"]
