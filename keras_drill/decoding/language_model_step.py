"""The decoding step of language models, for all kinds of backbones."""

from collections.abc import Callable
from typing import Any

import keras

from keras_drill.decoding.backbone_readers import make_reader
from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.label_encoders import IdentityLabelEncoder
from keras_drill.output_layer import OutputLayer
from keras_drill.types import Tensor


class LanguageModelStep(DecodingStep):
    """`DecodingStep` of a language model: lets samplers and beam search generate with the model.

    The step runs the backbone in the fastest way that the backbone allows. The attribute
    `decodes_by` names this way:

    - `"state"`: the backbone has a method `initial_state(batch_size)`, and its call takes
      `initial_state` and `return_state`, as in `keras_drill.models.AWDLSTM`. For each generated
      word, the backbone reads only the previous word.
    - `"cache"`: the backbone has the methods `begin_decoding(inputs, batch_size, length)` and
      `read_column(tokens, constants, cache)`, see `keras_drill.decoding.CacheReader`. For each
      generated word, the backbone reads only the previous word and its cache of earlier words.
    - `"prefix"`: any other causal backbone that maps tokens `[B, T]` to hidden states `[B, T, d]`.
      Examples are a `keras.Model` of Keras' own layers and a Transformer without a cache. For each
      generated word, the backbone reads the whole sequence again, padded to the maximum length. The
      carried state of stateful layers is neither used nor changed.

    The labels (output embeddings) of all words are computed once, when the step is created. So a
    label encoder, such as `keras_drill.ResidualLabelEncoder`, has no cost during generation. After
    further training create a new step, since an existing step may keep the labels from before.

    Args:
        model: A built `keras_drill.LanguageModel`, another object with the attributes `backbone`
            and `head` (the output layer), or a `keras.Model` whose last layer is a
            `keras_drill.OutputLayer`.

    Raises:
        ValueError: The backbone is not causal: its outputs depend on later words. Or the model
            does not end in a `keras_drill.OutputLayer`.

    Example:

    >>> import keras, keras_drill
    >>> from keras_drill.decoding import LanguageModelStep
    >>> embedding = keras.layers.Embedding(11, 4)
    >>> tokens = keras.Input((None,), dtype="int32")
    >>> hidden = keras.layers.LSTM(4, return_sequences=True)(embedding(tokens))
    >>> head = keras_drill.OutputLayer(11, embedding=embedding)
    >>> model = keras_drill.LanguageModel(keras.Model(tokens, hidden), head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> LanguageModelStep(model).decodes_by
    'prefix'
    >>> model = keras_drill.LanguageModel(keras_drill.models.AWDLSTM(11, 4, 5, 1), head)
    >>> _ = model(keras.ops.zeros((1, 1), dtype="int32"))
    >>> step = LanguageModelStep(model)
    >>> step.decodes_by
    'state'
    >>> constants, state = step.begin(None, batch_size=2, length=7)
    >>> hidden, state = step.read(keras.ops.zeros((2,), dtype="int32"), constants, state)
    >>> step.log_probs(hidden).shape[1]
    11
    """

    def __init__(self, model: Any):
        backbone, head = _parts_of(model)
        self._reader = make_reader(backbone)
        # Labels that are embeddings need no folding, and a copy would not be shared any more.
        is_plain = isinstance(head.label_encoder, IdentityLabelEncoder)
        self.head = head if is_plain else head.folded()
        super().__init__(self.head.vocabulary_size)

    @property
    def decodes_by(self) -> str:
        """How the step runs the backbone: by `"state"`, `"cache"` or `"prefix"`, see the class."""
        return self._reader.name

    @property
    def max_length(self) -> int | None:
        """Maximum length of a sequence that the backbone can read; `None` for no limit.

        Learned positions, or the shape of the backbone's input, limit the length.
        """
        return self._reader.max_length

    @property
    def variables(self) -> list[Any]:
        """All variables that the step reads: those of the backbone and of its own output layer.

        The step's output layer is the model's output layer, or a copy with the computed labels.
        Variables that the backbone and this output layer share occur twice.
        """
        return [*self._reader.backbone.variables, *self.head.variables]

    def read_whole(self, tokens: Tensor) -> Any:
        """Returns hidden states `[B, T, d]` of width d for B whole sequences of T tokens.

        The sequences are read from their beginning. The carried state of stateful layers is neither
        used nor changed.

        Args:
            tokens: Integer tensor `[B, T]`.
        """
        return self._reader.read_whole(tokens)

    def begin(self, inputs: Any, batch_size: int, length: int) -> Any:
        return self._reader.begin(inputs, batch_size, length)

    def prefill(self, tokens: Tensor, count: Tensor, constants: Any, state: Any) -> Any:
        return self._reader.prefill(tokens, count, constants, state)

    def read(self, tokens: Tensor, constants: Any, state: Any) -> Any:
        return self._reader.read(tokens, constants, state)

    def source_mask(self, constants: Any) -> Any:
        if not hasattr(self._reader.backbone, "read_column_with_attention"):
            return super().source_mask(constants)  # raises the error
        return self._reader.backbone.source_mask(constants)

    def read_with_attention(self, tokens: Tensor, constants: Any, state: Any) -> Any:
        return self._reader.backbone.read_column_with_attention(tokens, constants, state)

    def log_probs(self, hidden: Tensor) -> Tensor:
        return self.head(hidden)

    def scorer(self) -> Callable[[Tensor], Tensor]:
        terms = self.head.label_terms()  # KerBS' norms of labels take longer than the products
        if not terms or self._changes("log_probs"):
            return self.log_probs
        return lambda hidden: self.head.log_probs(hidden, self.head.encoded_labels(), terms)

    def logit_scorer(self) -> Callable[[Tensor], Tensor] | None:
        if not self.head.composition.has_logits or self._changes("log_probs", "scorer"):
            return None
        terms = self.head.label_terms()
        return lambda hidden: self.head.logits(hidden, self.head.encoded_labels(), terms)

    def _changes(self, *methods: str) -> bool:
        """Returns whether a subclass overrides methods, which must then be called."""
        return any(
            getattr(type(self), name) is not getattr(LanguageModelStep, name) for name in methods
        )


def _parts_of(model) -> tuple[Any, Any]:
    """Returns the backbone and the output layer of a model."""
    if hasattr(model, "backbone") and hasattr(model, "head"):
        return model.backbone, model.head
    head = model.layers[-1] if getattr(model, "layers", None) else None
    if not isinstance(head, OutputLayer) or getattr(model, "output", None) is not head.output:
        raise ValueError(
            "`model` must be a keras_drill.LanguageModel, a keras.Model whose last layer is a "
            "keras_drill.OutputLayer, or a keras_drill.decoding.DecodingStep. Other models become "
            "one by `keras_drill.LanguageModel(backbone, head)` or, from keras-hub, "
            f"`LanguageModel.from_causal_lm`. Received: {type(model).__name__}"
        )
    return keras.Model(model.input, head.input), head
