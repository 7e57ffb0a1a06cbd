"""How language models differ: by word frequency, and by the parameters of their output layers."""

from keras_drill.analysis.collect_log_probs import collect_log_probs
from keras_drill.analysis.compare_by_frequency import compare_by_frequency
from keras_drill.analysis.frequency_bin import FrequencyBin
from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.analysis.output_parameters import count_output_parameters

__all__ = [
    "FrequencyBin",
    "FrequencyComparison",
    "collect_log_probs",
    "compare_by_frequency",
    "count_output_parameters",
]
