"""How language models differ: by word frequency, by the rank of their log-probabilities, by the
words they can never choose, by the senses of their words, and by the parameters of their output
layers; and how near the texts that they write come to references."""

from keras_drill.analysis.argmaxable_words import ArgmaxableWords, find_argmaxable_words
from keras_drill.analysis.collect import collect_hidden, collect_log_probs
from keras_drill.analysis.compare_by_frequency import (
    FrequencyBin,
    FrequencyComparison,
    compare_by_frequency,
)
from keras_drill.analysis.compare_translations import (
    LengthBin,
    SentenceDifference,
    TranslationComparison,
    bleu_by_length,
    compare_translations,
    largest_differences,
)
from keras_drill.analysis.float64_head import float64_head
from keras_drill.analysis.largest_lead import Lead, largest_lead
from keras_drill.analysis.measure_argmaxable_words import measure_argmaxable_words
from keras_drill.analysis.output_parameters import (
    count_dedicated_parameters,
    count_output_parameters,
)
from keras_drill.analysis.paired_bootstrap import (
    PairedBootstrap,
    SystemScore,
    paired_bootstrap,
)
from keras_drill.analysis.rank import RankEstimate, measure_rank, numerical_rank, singular_values
from keras_drill.analysis.senses import (
    WordSenses,
    collect_word_senses,
    example_contexts,
    nearest_words,
    project_to_plane,
    words_by_senses,
)
from keras_drill.analysis.text_scores import TextScores, count_words, distinct_n, score_texts
from keras_drill.analysis.word_accuracy import (
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
    "TextScores",
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
    "count_words",
    "distinct_n",
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
    "score_texts",
    "singular_values",
    "words_by_senses",
]
