"""The recurrent layers of encoders and decoders."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_drill.layers import GRU, LSTM
from keras_drill.layers.recurrent import Recurrent

CELLS: dict[str, type[Recurrent]] = {"lstm": LSTM, "gru": GRU}


def make_layers(
    cell: str, units: int, count: int, seeds: Sequence[int | None], name: str, dtype: Any
) -> list[Recurrent]:
    """Makes recurrent layers for time-major sequences that return sequences and states.

    Args:
        cell: One of `CELLS`.
        units: Size of each layer.
        count: Number of layers.
        seeds: Seeds: two for the weights of each layer and, from index 50 on, one for each layer
            itself.
        name: Prefix of the layers' names.
        dtype: Dtype policy of the layers.
    """
    bound = units**-0.5

    def uniform(seed):
        return keras.initializers.RandomUniform(-bound, bound, seed=seed)

    return [
        CELLS[cell](
            units,
            return_sequences=True,
            return_state=True,
            time_major=True,
            kernel_initializer=uniform(seeds[2 * i]),
            recurrent_initializer=uniform(seeds[2 * i + 1]),
            seed=seeds[50 + i],
            dtype=dtype,
            name=f"{name}_{i}",
        )
        for i in range(count)
    ]
