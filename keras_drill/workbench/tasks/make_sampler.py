"""Makes samplers by their names in commands and recipes."""

from keras_drill.decoding import (
    GreedySampler,
    MinPSampler,
    Sampler,
    TemperatureSampler,
    TopKSampler,
    TopPSampler,
)


def make_sampler(kind: str, temperature: float, k: int, p: float, min_p: float) -> Sampler:
    """Makes the sampler with this name: greedy, temperature, top-k, top-p or min-p."""
    if kind == "greedy":
        return GreedySampler()
    if kind == "temperature":
        return TemperatureSampler(temperature)
    if kind == "top-k":
        return TopKSampler(k, temperature)
    if kind == "top-p":
        return TopPSampler(p, temperature)
    return MinPSampler(min_p, temperature)
