from typing import Any

import keras

from keras_drill.models.backbone_inputs import check_source_and_target, shape_built_for
from keras_drill.models.fused_loss_model import FusedLossModel


@keras.saving.register_keras_serializable(package="keras_drill")
class SequenceToSequence(FusedLossModel):
    """An encoder–decoder and an output layer, trained with the fused loss.

    It reads a source and the words of the target before each position. Called or asked to
    `predict`, it gives log-probabilities of all words at each position; training, evaluation and
    metrics are those of `keras_drill.LanguageModel`, and never build that matrix. What the backbone
    masks, the target's padding, costs the output layer nothing.

    Shapes:
        inputs: `{"source": [B, S], "target": [B, T]}`, integers; the target begins with a start
            symbol. A source of features, `[B, S, ...]`, is as the backbone wants it.
        labels, sample_weight: `[B, T]`, the target without its start symbol, and its end.
        output: log-probabilities `[B, T, V]`.

    Args:
        backbone: A `keras.Model` or layer that maps such inputs to hidden states `[B, T, d_h]`:
            `keras_drill.models.Transformer`, `RecurrentEncoderDecoder`, or one of your own. It is
            built for integers of any shape here, unless it is built already.
        head: A `keras_drill.OutputLayer`.
        label_smoothing: Share of a target's probability that is spread over all words.
        reduction: As in `keras_drill.OutputLayer.loss`.
        **kwargs: Keyword arguments of `keras.Model`.

    Raises:
        ValueError: "source" or "target" is missing, ragged, or not of integers.

    Example:

    >>> backbone = keras_drill.models.RecurrentEncoderDecoder(31, 6, units=7)
    >>> head = keras_drill.TiedOutput(31, backbone.embedding)
    >>> model = keras_drill.SequenceToSequence(backbone, head, label_smoothing=0.1)
    >>> model.compile("adam", metrics=[keras_drill.metrics.Perplexity()])
    >>> labels = np.array([[7, 5, 9, 2]])
    >>> inputs = {"source": np.array([[9, 5, 7]]), "target": np.array([[1, 7, 5, 9]])}
    >>> history = model.fit(inputs, labels, verbose=0)
    >>> search = keras_drill.decoding.BeamSearch(num_beams=2)
    >>> beams = search(
    ...     keras_drill.decoding.LanguageModelStep(model),
    ...     tokens=np.array([[1, 0, 0, 0]]),
    ...     lengths=np.array([1]),
    ...     inputs={"source": inputs["source"]},
    ...     end_token=2,
    ... )
    >>> tuple(beams.tokens.shape)
    (1, 2, 4)
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
        if shape_built_for(backbone) is None:
            self.build({"source": (None, None), "target": (None, None)})

    def run_backbone(self, inputs: Any, training: bool | None) -> Any:
        check_source_and_target(inputs)
        return super().run_backbone(inputs, training)
