"""Decoding: text generation by samplers and beam search, for any model with a `DecodingStep`."""

from keras_drill.decoding.addons_beam_search import AddonsBeamSearch
from keras_drill.decoding.backbone_readers import (
    BackboneReader,
    CacheReader,
    PrefixReader,
    StateReader,
)
from keras_drill.decoding.beam_search import Beams, BeamSearch
from keras_drill.decoding.constraints import (
    BannedWords,
    Constraint,
    MinLength,
    NoRepeatNGrams,
    RepetitionPenalty,
)
from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.generate import generate
from keras_drill.decoding.greedy_sampler import GreedySampler
from keras_drill.decoding.language_model_step import LanguageModelStep
from keras_drill.decoding.min_p_sampler import MinPSampler
from keras_drill.decoding.rows import Rows
from keras_drill.decoding.sampler import Generation, Sampler
from keras_drill.decoding.search import Search
from keras_drill.decoding.stream import stream
from keras_drill.decoding.temperature_sampler import TemperatureSampler
from keras_drill.decoding.top_k_sampler import TopKSampler
from keras_drill.decoding.top_p_sampler import TopPSampler

__all__ = [
    "AddonsBeamSearch",
    "BackboneReader",
    "BannedWords",
    "BeamSearch",
    "Beams",
    "CacheReader",
    "Constraint",
    "DecodingStep",
    "Generation",
    "GreedySampler",
    "LanguageModelStep",
    "MinLength",
    "MinPSampler",
    "NoRepeatNGrams",
    "PrefixReader",
    "RepetitionPenalty",
    "Rows",
    "Sampler",
    "Search",
    "StateReader",
    "TemperatureSampler",
    "TopKSampler",
    "TopPSampler",
    "generate",
    "stream",
]
