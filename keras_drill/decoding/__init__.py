"""Decoding for language models: samplers that share one loop over one step protocol."""

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.generate import generate
from keras_drill.decoding.generation import Generation
from keras_drill.decoding.greedy_sampler import GreedySampler
from keras_drill.decoding.language_model_step import LanguageModelStep
from keras_drill.decoding.sampler import Sampler
from keras_drill.decoding.temperature_sampler import TemperatureSampler
from keras_drill.decoding.top_k_sampler import TopKSampler
from keras_drill.decoding.top_p_sampler import TopPSampler

__all__ = [
    "DecodingStep",
    "Generation",
    "GreedySampler",
    "LanguageModelStep",
    "Sampler",
    "TemperatureSampler",
    "TopKSampler",
    "TopPSampler",
    "generate",
]
