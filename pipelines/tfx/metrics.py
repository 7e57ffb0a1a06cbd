"""Metrics of TensorFlow Model Analysis (TFMA) for the signature `examples` of a model."""

import math
from collections.abc import Iterable, Sequence

import apache_beam as beam
import numpy as np
import tensorflow_text  # noqa: F401  exported models have its operations
from tensorflow_model_analysis.metrics import metric_types

NAME = "perplexity"


class Perplexity(metric_types.Metric):
    """Metric: perplexity per word of the texts, or of the targets given their sources."""

    def __init__(self, name: str = NAME):
        super().__init__(_computations, name=name)


metric_types.register_metric(Perplexity)


def _computations(
    name: str = NAME,
    model_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    example_weighted: bool = False,
    **_kwargs,
) -> list[metric_types.MetricComputation]:
    computations = []
    for model_name in model_names or [""]:
        key = metric_types.MetricKey(
            name=name, model_name=model_name, example_weighted=example_weighted
        )
        computations.append(
            metric_types.MetricComputation(
                keys=[key], preprocessors=None, combiner=_PerplexityCombiner(key)
            )
        )
    return computations


class _PerplexityCombiner(beam.CombineFn):
    """Sums the log-probabilities and the numbers of words."""

    def __init__(self, key: metric_types.MetricKey):
        self.key = key

    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add_input(
        self, sums: tuple[float, int], element: metric_types.StandardMetricInputs
    ) -> tuple[float, int]:
        outputs = element.prediction
        if self.key.model_name and self.key.model_name in outputs:
            outputs = outputs[self.key.model_name]
        log_prob = float(np.sum(outputs["total_log_probs"], dtype=np.float64))
        return sums[0] + log_prob, sums[1] + int(np.sum(outputs["lengths"]))

    def merge_accumulators(self, all_sums: Iterable[tuple[float, int]]) -> tuple[float, int]:
        log_probs, words = zip(*all_sums, strict=True)
        return sum(log_probs), sum(words)

    def extract_output(self, sums: tuple[float, int]) -> dict[metric_types.MetricKey, float]:
        log_prob, words = sums
        return {self.key: math.exp(-log_prob / words) if words else math.nan}
