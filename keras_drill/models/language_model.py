from typing import Any

import keras

from keras_drill.models.causal_lm import parts_of
from keras_drill.models.fused_loss_model import FusedLossModel
from keras_drill.models.grown_backbone import grown_backbone
from keras_drill.models.preprocessed_model import PreprocessedModel
from keras_drill.output_layer import OutputLayer
from keras_drill.output_layer.begin_from import begin_from
from keras_drill.output_layer.tying import embeddings_inside, path_of


@keras.saving.register_keras_serializable(package="keras_drill")
class LanguageModel(PreprocessedModel, FusedLossModel):  # type: ignore[misc]  # Keras' arguments
    """Language model: a backbone and an output layer, trained with the fused loss.

    Calling the model and `predict` return the log-probabilities of all V words, `[B, T, V]`, for B
    sequences of T tokens. `fit`, `evaluate`, `train_on_batch` and `test_on_batch` never store this
    large tensor. They use the fused loss of the output layer, which computes loss and gradients for
    a group of tokens at a time; see `keras_drill.OutputLayer`. Metrics receive the log-probability
    of each target, `[B, T]`, as `y_pred`; use the metrics of `keras_drill.metrics`. `compile` takes
    no `loss`. Loss and metrics ignore tokens that the backbone masks.

    If the input shape of the backbone is known, the constructor builds the model, so that weights
    can be counted and loaded before `fit`. The shape is known for backbones that are already built,
    and for backbones of this package, except a stateful backbone without `batch_size`. Otherwise
    the first batch builds the model.

    Shapes:
        tokens: The backbone's input, usually integers `[B, T]`, or a dictionary if the backbone
            takes several inputs. For models of a source and a target use
            `keras_drill.SequenceToSequence`.
        targets: Integers `[B, T]`. The target of a token is usually the next token.
        sample_weight: `None`, or weights of the tokens `[B, T]` or of the sequences `[B]`.
        output: Log-probabilities `[B, T, V]`.

    Args:
        backbone: A `keras.Model` or layer that maps tokens to hidden states `[B, T, d_h]` of any
            width d_h. The backbone's own losses (`add_loss`) are added to the cross-entropy.
        head: The output layer, a `keras_drill.OutputLayer`.
        label_smoothing: Share of a target's probability that is distributed over all words, in
            [0, 1).
        reduction: Reduction of the tokens' losses, as in `keras.losses`: "sum_over_batch_size" (or
            "mean"), "mean_with_sample_weight", "sum", or "none" (or `None`).
        preprocessor: Function that converts each batch of `fit`, `evaluate` and `predict`, for
            example strings, to tokens; `None` for data that are tokens already. Either a
            `keras_hub.models.CausalLMPreprocessor`, or a function that is called as
            `preprocessor(x, y=y, sample_weight=sample_weight)` and returns `tokens`,
            `(tokens, targets)` or `(tokens, targets, sample_weight)`.
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
        preprocessor: Any = None,
        **kwargs: Any,
    ):
        super().__init__(backbone, head, label_smoothing, reduction, **kwargs)
        self.preprocessor = preprocessor
        self.build_early(getattr(backbone, "inputs_shape", None))

    @classmethod
    def from_causal_lm(
        cls, causal_lm: Any, z_loss: float = 0.0, tile_bytes: int | None = None, **kwargs: Any
    ) -> "LanguageModel":
        """Converts a pretrained model of keras-hub, to train it with the fused loss.

        The new model shares backbone, embedding and preprocessor with `causal_lm`. After training,
        `generate` and `save_to_preset` of `causal_lm` therefore use the trained weights. The new
        model gives the same probabilities as `causal_lm`. It bounds the logits as `causal_lm` does
        (`logit_soft_cap`), and computes them in the dtype of the `ReversibleEmbedding` of
        `causal_lm`. This embedding may be tied or untied (`tie_weights`). With a quantised
        embedding, results differ slightly: the new model dequantises the embedding to the compute
        dtype, while `causal_lm` rounds hidden states to int8. You can enable LoRA on
        `causal_lm.backbone` before or after the conversion.

        Args:
            causal_lm: A `keras_hub.models.CausalLM`, usually from `from_preset`.
            z_loss: Coefficient of the term `logsumexp(logits)^2` in the loss of every token.
            tile_bytes: Memory in bytes for the logits of one group of tokens (a tile); `None` for
                the default of `keras_drill.OutputLayer`.
            **kwargs: Other arguments of `LanguageModel`, such as `label_smoothing`.

        Returns:
            A model that is not compiled yet.

        Raises:
            ImportError: keras-hub is not installed.
            ValueError: `causal_lm` is not a `CausalLM`, has trainable quantised layers, or computes
                its logits without a `ReversibleEmbedding`.
        """
        parts = parts_of(causal_lm)
        head = OutputLayer(
            parts.embedding.input_dim,
            embedding=parts.embedding,
            use_bias=False,
            logit_soft_cap=parts.soft_cap,
            z_loss=z_loss,
            tile_bytes=tile_bytes,
            dtype=parts.dtype,
        )
        kwargs = {"preprocessor": causal_lm.preprocessor, **kwargs}
        return cls(parts.backbone, head, **kwargs)

    def with_head(self, head: OutputLayer) -> "LanguageModel":
        """Returns a model with another output layer that at first gives the same probabilities.

        Use this method to continue training with a larger output layer. The new `head` begins with
        the labels (output embeddings of the words) and biases of this model's head. So the
        log-probability of every word stays the same up to rounding. The new head can be:

        - `DrillOutput(..., gated=True)`: the term that its residual network adds to the embeddings
          starts at 0.
        - `MixtureOfSoftmaxes(..., gated=True)`: at first, all softmaxes of the mixture read the
          unchanged hidden state.
        - `KernelizedBayesianSoftmax(...)`, except `variant="reference"`: the label vectors of a
          word (its senses) start as copies of the word's label, plus noise. The noise lets training
          separate the senses. Its standard deviation is 3e-4 times the root mean square of the
          labels, and its sum over a word's senses is 0. If this model's head has biases,
          `use_bias=True` is required. If words have different numbers of senses, `use_bias=True`
          is also required, and the biases of a word with n senses are lowered by log n.
        - `OutputLayer(...)`, to add biases to a head without biases. New biases start at 0.
        - `BilinearOutput(..., kernel_initializer="identity")`: its matrix starts as the identity.

        With `embedding=model.head.embedding`, where `model` is this model, the new head is tied to
        the same embedding. A head without `embedding` begins with its own copies of the labels. A
        `KernelizedBayesianSoftmax` always has its own labels, since there are more senses than
        words.

        Args:
            head: A `keras_drill.OutputLayer` that is not built yet, with the `vocabulary_size` and
                `logit_soft_cap` of this model's head.

        Returns:
            A new model, not compiled, which shares the backbone with this model.

        Raises:
            ValueError: `head` is already built, or does not reproduce this model's probabilities,
                for example because `gated=True` is missing. Or this model's head is not a softmax
                over inner products of labels and hidden states.
        """
        begin_from(head, self.head)
        return type(self)(
            self.backbone,
            head,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            preprocessor=self.preprocessor,
        )

    def with_words(
        self, descriptions: Any, read_as: int, bias: Any = None, **kwargs: Any
    ) -> "LanguageModel":
        """Returns the trained model with additional words that did not occur in training.

        The head's label encoder must be a `keras_drill.DescriptionLabelEncoder`, which computes the
        labels (output embeddings) of the new words from descriptions, such as their characters; see
        `OutputLayer.with_words`. The logits of all other words do not change.

        Args:
            descriptions: `[n, ...]`, descriptions of the n new words, of the same kind as those of
                the label encoder. The ids of the new words follow the existing ids.
            read_as: Id of a word, usually `<unk>`, whose row of the input embedding is copied for
                the new words.
            bias: Biases of the new words, `[n]` or one number; `None` is the mean of all biases.
                Must be `None` if the head has no biases.
            **kwargs: Other arguments of `LanguageModel`. `label_smoothing`, `reduction` and
                `preprocessor` default to those of this model.

        Returns:
            A model, not compiled, that shares no weights with this model.

        Raises:
            ValueError: The head has another label encoder, the config of the backbone contains no
                vocabulary size (`vocabulary_size`, or `input_dim` of an embedding), the backbone's
                embeddings are quantised or have LoRA, `descriptions` has a wrong shape, `read_as`
                is not the id of a word, or `bias` is given for a head without biases.
        """
        if not 0 <= read_as < self.head.vocabulary_size:
            raise ValueError(
                f"`read_as` must be the id of a word, in [0, {self.head.vocabulary_size}). "
                f"Received: read_as={read_as}"
            )
        size = self.head.vocabulary_size
        backbone = grown_backbone(self.backbone, size, len(descriptions), read_as)
        path = path_of(self.head.embedding, embeddings_inside(self.backbone))
        found = embeddings_inside(backbone)
        embedding = next((layer for where, layer in found if where == path), None)
        options = {
            "label_smoothing": self.label_smoothing,
            "reduction": self.reduction,
            "preprocessor": self.preprocessor,
            **kwargs,
        }
        return type(self)(backbone, self.head.with_words(descriptions, bias, embedding), **options)

    def get_config(self) -> dict:
        config = super().get_config()
        if self.preprocessor is not None:
            config["preprocessor"] = keras.saving.serialize_keras_object(self.preprocessor)
        return config

    @classmethod
    def from_config(cls, config: dict) -> "LanguageModel":
        config = dict(config)
        preprocessor = config.get("preprocessor")
        if isinstance(preprocessor, dict):
            config["preprocessor"] = keras.saving.deserialize_keras_object(preprocessor)
        return super().from_config(config)
