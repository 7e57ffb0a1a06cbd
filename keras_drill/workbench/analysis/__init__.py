"""Analysis of trained models and comparison of their outputs.

Language models are compared by word frequency, by the rank of their log-probabilities, by the
senses of words, and by the parameters of their output layers. Another analysis finds words that a
model can never choose. Translations are compared by corpus scores, by length and by sentence.
"""

from keras_drill.workbench.analysis.argmaxable_words import ArgmaxableWords, find_argmaxable_words
from keras_drill.workbench.analysis.collect import collect_hidden, collect_log_probs
from keras_drill.workbench.analysis.compare_by_frequency import (
    FrequencyBin,
    FrequencyComparison,
    compare_by_frequency,
)
from keras_drill.workbench.analysis.compare_translations import (
    LengthBin,
    SentenceDifference,
    TranslationComparison,
    bleu_by_length,
    compare_translations,
    largest_differences,
)
from keras_drill.workbench.analysis.float64_head import float64_head
from keras_drill.workbench.analysis.largest_lead import Lead, largest_lead
from keras_drill.workbench.analysis.measure_argmaxable_words import measure_argmaxable_words
from keras_drill.workbench.analysis.output_parameters import (
    count_dedicated_parameters,
    count_output_parameters,
)
from keras_drill.workbench.analysis.paired_bootstrap import (
    PairedBootstrap,
    SystemScore,
    paired_bootstrap,
)
from keras_drill.workbench.analysis.rank import (
    RankEstimate,
    measure_rank,
    numerical_rank,
    singular_values,
)
from keras_drill.workbench.analysis.senses import (
    WordSenses,
    collect_word_senses,
    example_contexts,
    nearest_words,
    project_to_plane,
    words_by_senses,
)
from keras_drill.workbench.analysis.word_accuracy import (
    WordAccuracies,
    WordAccuracy,
    WordAccuracyBin,
    compare_word_accuracy,
)

__all__ = [
    "ArgmaxableWords",
    "FrequencyBin",
    "FrequencyComparison",
    "Lead",
    "LengthBin",
    "PairedBootstrap",
    "RankEstimate",
    "SentenceDifference",
    "SystemScore",
    "TranslationComparison",
    "WordAccuracies",
    "WordAccuracy",
    "WordAccuracyBin",
    "WordSenses",
    "bleu_by_length",
    "collect_hidden",
    "collect_log_probs",
    "collect_word_senses",
    "compare_by_frequency",
    "compare_translations",
    "compare_word_accuracy",
    "count_dedicated_parameters",
    "count_output_parameters",
    "example_contexts",
    "find_argmaxable_words",
    "float64_head",
    "largest_differences",
    "largest_lead",
    "measure_argmaxable_words",
    "measure_rank",
    "nearest_words",
    "numerical_rank",
    "paired_bootstrap",
    "project_to_plane",
    "singular_values",
    "words_by_senses",
]
