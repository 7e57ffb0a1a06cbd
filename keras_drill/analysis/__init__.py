"""How language models differ: by word frequency, by the rank of their log-probabilities, by the
words they can never choose, by the senses of their words, and by the parameters of their output
layers."""

from keras_drill.analysis.argmaxable_words import ArgmaxableWords
from keras_drill.analysis.collect_hidden import collect_hidden
from keras_drill.analysis.collect_log_probs import collect_log_probs
from keras_drill.analysis.collect_word_senses import collect_word_senses
from keras_drill.analysis.compare_by_frequency import compare_by_frequency
from keras_drill.analysis.example_contexts import example_contexts
from keras_drill.analysis.find_argmaxable_words import find_argmaxable_words
from keras_drill.analysis.float64_head import float64_head
from keras_drill.analysis.frequency_bin import FrequencyBin
from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.analysis.largest_lead import Lead, largest_lead
from keras_drill.analysis.measure_argmaxable_words import measure_argmaxable_words
from keras_drill.analysis.measure_rank import measure_rank
from keras_drill.analysis.nearest_words import nearest_words
from keras_drill.analysis.numerical_rank import numerical_rank
from keras_drill.analysis.output_parameters import count_output_parameters
from keras_drill.analysis.project_to_plane import project_to_plane
from keras_drill.analysis.rank_estimate import RankEstimate
from keras_drill.analysis.singular_values import singular_values
from keras_drill.analysis.word_senses import WordSenses
from keras_drill.analysis.words_by_senses import words_by_senses

__all__ = [
    "ArgmaxableWords",
    "FrequencyBin",
    "FrequencyComparison",
    "Lead",
    "RankEstimate",
    "WordSenses",
    "collect_hidden",
    "collect_log_probs",
    "collect_word_senses",
    "compare_by_frequency",
    "count_output_parameters",
    "example_contexts",
    "find_argmaxable_words",
    "float64_head",
    "largest_lead",
    "measure_argmaxable_words",
    "measure_rank",
    "nearest_words",
    "numerical_rank",
    "project_to_plane",
    "singular_values",
    "words_by_senses",
]
