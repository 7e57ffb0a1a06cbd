from typing import Any

import keras
from keras import ops

from keras_drill.label_encoders import IdentityLabelEncoder
from keras_drill.scores import KerBSKernel, Score
from keras_drill.senses.copies_of_words import check_senses_start, labels_start
from keras_drill.senses.sense_allocation import SenseAllocation
from keras_drill.types import Initializer, Shape, Tensor, Tensors

WEIGHTINGS = ("posterior", "usage")


@keras.saving.register_keras_serializable(package="keras_drill")
class SenseEmbedding(keras.layers.Embedding):
    """Input embedding of words with several senses: the weighted mean of a word's sense embeddings.

        e_t = sum_j P(sense j of word x_t | context) w_j

    Pass this layer as `embedding` to a backbone of `keras_drill.models`, and to a tied
    `keras_drill.KernelizedBayesianSoftmax`. A sense is one of several embeddings of a word; sense j
    has the embedding w_j. e_t is the layer's output for the word x_t at position t. The context is
    the hidden state h from which the model predicted word x_t. With a context, the weights are the
    exact posterior over the word's senses,

        P(j) = softmax_j K(h, w_j),

    with the kernel K (`score`), as in a `keras_drill.KernelizedBayesianSoftmax` that shares this
    embedding. The posterior needs the hidden state of the previous step, so recurrent backbones
    compute the posterior inside their time loop.

    Without a context, the weights are proportional to the usage of the senses, a running average of
    their probabilities (see `keras_drill.senses.SenseAllocation`). These weights do not depend on
    hidden states, which is faster and suits models that process all positions in parallel. The
    callback `keras_drill.SenseReallocation` updates the usage after every `interval` training
    steps. Before the first update, all senses have the same weight.

    Call arguments:
        words: `[...]` integers in `[0, V)`.
        context: `None`, or `[..., d]`, the hidden states that predicted the words.

    Output shape: `[..., d]`.

    Args:
        vocabulary_size: Number of words V.
        output_dim: Width of the embeddings d.
        num_senses: Number of senses M; `None` is three per word.
        min_senses: Fewest senses of a word.
        max_senses: Most senses of a word, S.
        dynamic: Whether `keras_drill.SenseReallocation` may move senses to other words.
        score: `keras_drill.scores.Score` that compares contexts with senses; `None` is
            `keras_drill.scores.KerBSKernel()`. A tied output layer shares the score and its
            parameters.
        weighting: Weights that the recurrent backbones of `keras_drill.models` use for words that
            the model also predicts (the tokens of a language model, the target of an
            encoder–decoder): "posterior" (with context) or "usage" (without context). "posterior"
            needs an output layer without a label encoder. Transformers always weigh by usage.
        embeddings_initializer: Initializer of the sense embeddings; `None` is uniform within ±1/√d.
            With the ±0.05 of Keras' embeddings, encoder–decoder models need much longer to learn
            which sense to use.
        usage_by: How the usage of a sense is measured, "posterior" or "probability"; see
            `keras_drill.senses.SenseAllocation`.
        senses_start: Initial embeddings of the senses. "random" initializes each sense
            independently. "copies" initializes one embedding per word, and the word's senses start
            as copies of this embedding plus noise. The noise has a standard deviation of 3e-4 times
            the root mean square of the embeddings.
        **kwargs: Keyword arguments of `keras.layers.Embedding`, except `input_dim`.

    Attributes:
        allocation: A `keras_drill.senses.SenseAllocation`, which stores the word of each sense.
        score_parameters: The score's variables, `[M]` each, such as the parameters θ of the kernel.

    Raises:
        ValueError: An argument is out of range or does not match another.

    Example:

    >>> embedding = keras_drill.SenseEmbedding(11, 5)
    >>> words = keras.ops.array([[3, 1, 4]])
    >>> tuple(embedding(words).shape), tuple(embedding.embeddings.shape)
    ((1, 3, 5), (33, 5))
    >>> tuple(embedding(words, context=keras.ops.ones((1, 3, 5))).shape)
    (1, 3, 5)

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274), equations 6 and 7
    """

    embeddings_initializer: Any  # of Keras' own layer

    def __init__(
        self,
        vocabulary_size: int,
        output_dim: int,
        num_senses: int | None = None,
        min_senses: int = 1,
        max_senses: int = 4,
        dynamic: bool = True,
        score: Score | None = None,
        weighting: str = "posterior",
        embeddings_initializer: Initializer | None = None,
        usage_by: str = "posterior",
        senses_start: str = "random",
        **kwargs: Any,
    ):
        if weighting not in WEIGHTINGS:
            raise ValueError(
                f"`weighting` must be one of {WEIGHTINGS}. Received: weighting={weighting!r}"
            )
        check_senses_start(senses_start)
        allocation = SenseAllocation(
            vocabulary_size,
            num_senses,
            min_senses,
            max_senses,
            dynamic,
            usage_by,
            name="allocation",
        )
        if embeddings_initializer is None:
            bound = output_dim**-0.5
            embeddings_initializer = keras.initializers.RandomUniform(-bound, bound)
        super().__init__(allocation.num_senses, output_dim, embeddings_initializer, **kwargs)
        self.allocation = allocation
        self.score = KerBSKernel() if score is None else score
        self.weighting = weighting
        self.senses_start = senses_start

    def build(self, input_shape: Shape | None = None) -> None:
        initializer = self.embeddings_initializer
        # `Embedding.build` reads the initializer from this attribute.
        self.embeddings_initializer = labels_start(initializer, self.allocation, self.senses_start)
        super().build(input_shape)
        self.embeddings_initializer = initializer
        self.score_parameters = [
            self.add_weight(shape=(self.input_dim,), initializer=value, name=name, autocast=False)
            for name, value in self.score.parameter_initializers.items()
        ]

    def call(self, words: Tensor, context: Tensor | None = None) -> Tensor:
        return self.weigh(*self.look_up(words), context=context)

    def look_up(self, words: Tensor) -> tuple[Tensor, ...]:
        """Looks up the inputs of `weigh` for words.

        Recurrent backbones call this method once for all time steps, before their time loop.

        Args:
            words: `[...]` integers.

        Returns:
            A tuple, in which S is `max_senses`: `[..., S, d]`, the embeddings of the words' senses;
            `[..., S]`, a mask, False for the padding of words with fewer senses; `[..., S]`, the
            senses' usage; and `[..., S]` for each of the score's parameters.
        """
        # Keras passes the ids of a model without an integer Input as floats.
        columns, mask = self.allocation.columns(ops.cast(words, "int32"))
        return (
            ops.take(ops.cast(self.embeddings, self.compute_dtype), columns, axis=0),
            mask,
            ops.take(self.allocation.usage, columns, axis=0),
            *[ops.take(parameter, columns, axis=0) for parameter in self.score_parameters],
        )

    def weigh(
        self,
        senses: Tensor,
        mask: Tensor,
        usage: Tensor,
        *parameters: Tensor,
        context: Tensor | None = None,
    ) -> Tensor:
        """Returns the weighted mean of sense embeddings, `[..., d]`.

        Args:
            senses, mask, usage, *parameters: The output of `look_up`.
            context: `[..., d]`, the hidden states that predicted the words; `None` for weights
                by usage.
        """
        if context is None:
            logits = ops.log(usage + 1e-12)  # equal weights for a word whose usage is 0
        else:
            logits = self.score.pair_scores(context, senses, parameters)
        logits = ops.where(mask, logits, ops.full_like(logits, float("-inf")))
        weights = ops.cast(_posterior(logits), self.compute_dtype)
        return ops.sum(weights[..., None] * senses, axis=-2)

    def weigh_gradient(
        self, upstream: Tensor, senses: Tensor, mask: Tensor, parameters: Tensors, context: Tensor
    ) -> tuple[Tensor, Tensor, Tensors]:
        """Computes the gradients of the loss with respect to the inputs of `weigh`, with a context.

        Backbones whose time loop has a custom gradient call this method.

        Args:
            upstream: `[..., d]`, the gradient of the loss with respect to the output of `weigh`.
            senses, mask, parameters: From the output of `look_up`; `parameters` are its tensors
                after `usage`.
            context: `[..., d]`, as in `weigh`.

        Returns:
            The gradients with respect to the context, the senses, and the parameters, of their
            shapes.
        """
        upstream = ops.cast(upstream, parameters[0].dtype if parameters else "float32")
        logits = self.score.pair_scores(context, senses, parameters)
        logits = ops.where(mask, logits, ops.full_like(logits, float("-inf")))
        weights = _posterior(logits)
        d_weights = ops.einsum("...d,...sd->...s", upstream, ops.cast(senses, upstream.dtype))
        d_logits = weights * (d_weights - ops.sum(weights * d_weights, -1, keepdims=True))
        d_context, d_senses, d_parameters = self.score.pair_gradients(
            d_logits, context, senses, parameters
        )
        d_senses = d_senses + weights[..., None] * upstream[..., None, :]
        return d_context, d_senses, d_parameters

    def compute_output_shape(self, words_shape: Shape, context_shape: Shape | None = None) -> Shape:
        return (*words_shape, self.output_dim)

    def save_own_variables(self, store: Any) -> None:
        keras.layers.Layer.save_own_variables(self, store)  # Embedding's method saves one variable

    def load_own_variables(self, store: Any) -> None:
        keras.layers.Layer.load_own_variables(self, store)

    def check_head(self, head: Any) -> None:
        """Raises `ValueError` if an output layer cannot be tied to this embedding.

        `OutputLayer` calls this method.

        Args:
            head: The `keras_drill.OutputLayer`.
        """
        allocation = getattr(head.composition, "allocation", None)
        if allocation is None or allocation.arguments != self.allocation.arguments:
            raise ValueError(
                "`composition` must be `MultiSense` with the senses of the embedding, "
                f"{self.allocation.arguments}. "
                f"Received: {type(head.composition).__name__} {head.composition.get_config()}"
            )
        if type(head.score) is not type(self.score) or (
            head.score.get_config() != self.score.get_config()
        ):
            raise ValueError(
                f"`score` must equal the score of the embedding, {type(self.score).__name__} "
                f"{self.score.get_config()}. Received: {type(head.score).__name__} "
                f"{head.score.get_config()}"
            )
        if self.weighting == "posterior" and not isinstance(
            head.label_encoder, IdentityLabelEncoder
        ):
            raise ValueError(
                "`label_encoder` must be None if the embedding weights senses by their posterior, "
                "because the posterior is computed from the embeddings without the label encoder. "
                'Use SenseEmbedding(..., weighting="usage") with a label encoder. Received: '
                f"label_encoder={head.label_encoder!r}"
            )

    def get_config(self) -> dict:
        config = super().get_config()
        del config["input_dim"]
        return {
            **config,
            **self.allocation.arguments,
            "score": keras.saving.serialize_keras_object(self.score),
            "weighting": self.weighting,
            "senses_start": self.senses_start,
        }

    @classmethod
    def from_config(cls, config: dict) -> "SenseEmbedding":
        config = dict(config)
        if isinstance(config.get("score"), dict):
            config["score"] = keras.saving.deserialize_keras_object(config["score"])
        return cls(**config)


def _posterior(logits):
    """Returns the softmax over senses, without Keras' warning about an axis of size 1."""
    return ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits)
