"""Senses that stay where they are once weights are averaged."""

from keras_drill.callbacks import NonMonotonicAveraging, SenseReallocation


class ReallocationBeforeAveraging(SenseReallocation):
    """Moves senses until a training begins to average its weights.

    Afterwards the average of a sense that moved would be one of embeddings of different words.

    Args:
        averaging: the callback that averages.
        **kwargs: as of `SenseReallocation`.
    """

    def __init__(self, averaging: NonMonotonicAveraging, **kwargs):
        super().__init__(**kwargs)
        self._averaging = averaging

    def on_train_batch_end(self, batch, logs=None):
        if not self._averaging.averaging:
            super().on_train_batch_end(batch, logs)
