"""The decoding step of a recurrent language model."""

from keras import ops

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.label_encoders import IdentityLabelEncoder


class LanguageModelStep(DecodingStep):
    """Decoding step of a `keras_drill.LanguageModel` with a recurrent backbone.

    A label encoder is folded once, here, and costs nothing at each step. Its labels are those of
    this moment, so make a new step after more training.

    Args:
        model: A built `keras_drill.LanguageModel` (or anything with a `backbone` and a `head`)
            whose backbone takes `initial_state` and `return_state` and has
            `initial_state(batch_size)`.

    Example:

    >>> import keras, keras_drill
    >>> backbone = keras_drill.models.AWDLSTM(11, embedding_dim=4, units=5, num_layers=1)
    >>> head = keras_drill.OutputLayer(11, embedding=backbone.embedding)
    >>> model = keras_drill.LanguageModel(backbone, head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> step = LanguageModelStep(model)
    >>> state = step.prefill(keras.ops.zeros((2, 3), dtype="int32"), 3)
    >>> log_probs, state = step(keras.ops.zeros((2,), dtype="int32"), state)
    >>> log_probs.shape[1]
    11
    """

    def __init__(self, model):
        self.backbone = model.backbone
        head = model.head
        # Labels that are embeddings cost nothing either, and a copy would not be shared any more.
        is_plain = isinstance(head.label_encoder, IdentityLabelEncoder)
        self.head = head if is_plain else head.folded()
        super().__init__(self.head.vocabulary_size)

    def read(self, tokens):
        """Hidden states `[B, T, d]` of whole sequences `[B, T]`, from the state of a beginning."""
        return self._run(tokens, self.backbone.initial_state(ops.shape(tokens)[0]))[0]

    def prefill(self, tokens, count):
        state = self.backbone.initial_state(ops.shape(tokens)[0])
        if not isinstance(count, int):
            # The width of a slice must be known under XLA, the length of a scan need not be.
            return ops.fori_loop(
                0, count, lambda t, state: self._read(ops.take(tokens, t, axis=1), state)[1], state
            )
        if count == 0:
            return state
        return self._run(tokens[:, :count], state)[1]

    def __call__(self, tokens, state):
        hidden, state = self._read(tokens, state)
        return self.head(hidden), state

    def _read(self, tokens, state):
        hidden, new_state = self._run(tokens[:, None], state)
        return hidden[:, 0], new_state

    def _run(self, tokens, state):
        return self.backbone(tokens, initial_state=state, return_state=True, training=False)
