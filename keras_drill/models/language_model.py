from typing import Any

import keras

from keras_drill.models.fused_loss_model import FusedLossModel


@keras.saving.register_keras_serializable(package="keras_drill")
class LanguageModel(FusedLossModel):
    """A backbone and an output layer, trained with the fused loss.

    Called or asked to `predict`, it gives log-probabilities of all words. In `fit`, `evaluate`,
    `train_on_batch` and `test_on_batch` that matrix never exists: the output layer's fused loss
    takes the backbone's hidden states, and metrics get the log-probability of each target.

    Shapes:
        tokens: whatever the backbone takes, `[B, T]` as a rule, or a dictionary. A source and a
            target are what `keras_drill.SequenceToSequence` is for.
        targets, sample_weight: `[B, T]`.
        output: log-probabilities `[B, T, V]`.

    Args:
        backbone: A `keras.Model` or layer that maps tokens to hidden states `[B, T, d_h]`. Losses
            that it adds (`add_loss`) are added to the cross-entropy.
        head: A `keras_drill.OutputLayer`.
        label_smoothing: Share of a target's probability that is spread over all words.
        reduction: As in `keras_drill.OutputLayer.loss`.
        **kwargs: Keyword arguments of `keras.Model`.

    Example:

    >>> embedding = keras.layers.Embedding(101, 13)
    >>> backbone = keras.Sequential([embedding, keras.layers.LSTM(13, return_sequences=True)])
    >>> head = keras_drill.OutputLayer(101, embedding=embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> model.compile("adam", metrics=[keras_drill.metrics.Perplexity()])
    >>> tokens = np.arange(21).reshape(3, 7)
    >>> history = model.fit(tokens, tokens + 1, verbose=0)
    >>> sorted(history.history)
    ['loss', 'perplexity']
    >>> model.predict(tokens, verbose=0).shape
    (3, 7, 101)
    """

    def __init__(
        self,
        backbone: keras.Model,
        head: Any,
        label_smoothing: float = 0.0,
        reduction: str | None = "sum_over_batch_size",
        **kwargs: Any,
    ):
        super().__init__(backbone, head, label_smoothing, reduction, **kwargs)
        self.build_early()
