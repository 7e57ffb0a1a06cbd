from typing import Any

import keras
from keras import ops

from keras_drill.compositions import MultiSense
from keras_drill.output_layer import OutputLayer
from keras_drill.scores import InnerProduct, KerBSKernel
from keras_drill.senses import SenseAllocation, SenseEmbedding
from keras_drill.senses.copies_of_words import bias_start, check_senses_start, labels_start
from keras_drill.types import Tensor

VARIANTS = ("paper", "reference", "inner_product")


@keras.saving.register_keras_serializable(package="keras_drill")
class KernelizedBayesianSoftmax(OutputLayer):
    """The kernelized Bayesian softmax (KerBS): several label vectors, or senses, per word.

        p(y) = sum_{senses m of y} exp K_θm(h, w_m) / sum_{all senses m} exp K_θm(h, w_m)

    h is the hidden state, and y a word. Each sense m has a vector w_m and a parameter θ_m, which
    sets the width of the kernel K; see `keras_drill.scores.KerBSKernel`. The layer returns log p(y)
    for all words. The assignment of senses to words is part of the layer's state: the callback
    `keras_drill.SenseReallocation` moves rarely used senses to words that need more senses. The
    fused loss (see `keras_drill.OutputLayer`) does not store the matrix of word probabilities.

    The ablations of the paper are `variant="inner_product"` (no kernel),
    `num_senses=vocabulary_size` (one sense per word) and `dynamic_allocation=False` (no
    reallocation).

    If `embedding` is a `SenseEmbedding`, its values replace the arguments from `num_senses` to
    `senses_start`, which must be `None` or equal to these values. The defaults below apply to
    layers without a `SenseEmbedding`.

    Args:
        vocabulary_size: Number of words V.
        embedding: A `keras_drill.SenseEmbedding` to share senses, kernel parameters and allocation
            with. With `None`, the layer has its own senses.
        num_senses: Number of senses M. Default: three per word.
        min_senses: Fewest senses of a word. Default: 1.
        max_senses: Most senses of a word. Default: 4.
        variant: Kernel: "paper" (as in the paper), "reference" (as in the authors' code, a
            different formula) or "inner_product" (no kernel). Default: "paper".
        dynamic_allocation: Whether senses may move to other words. If `True`, training collects the
            statistics that the callback `keras_drill.SenseReallocation` needs to move them. Without
            the callback, no sense moves. Default: `True`.
        usage_by: "posterior" or "probability": how the usage of a sense is measured; see
            `keras_drill.senses.SenseAllocation`. Default: "posterior".
        senses_start: Initial vectors of the senses. "random" initializes each sense independently.
            "copies" initializes one vector per word, and the word's senses start as copies of this
            vector plus noise. The noise has a standard deviation of 3e-4 times the root mean square
            of the vectors. With `use_bias=True`, the initial biases of a word with n senses are
            lowered by log n if words have different numbers of senses. Without biases, words with
            more senses then start with a higher probability. Default: "random".
        use_bias: Whether every sense has a bias. The paper uses no biases.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `score`, `composition` and
            `pad_labels_to`. Any `label_encoder` is allowed without a `SenseEmbedding`, and with a
            `SenseEmbedding(..., weighting="usage")`. On CPUs the default of `tile_bytes` is at
            least 192 MiB.

    Raises:
        ValueError: An argument is out of range, or contradicts the `SenseEmbedding`.

    Attributes:
        allocation: A `keras_drill.senses.SenseAllocation`, with the word of each sense
            (`sense_to_word`) and the statistics.
        theta: The kernel's parameters θ of all M senses, a variable `[M]`; `None` without a kernel.

    Example:

    >>> head = keras_drill.KernelizedBayesianSoftmax(11, num_senses=29)
    >>> hidden = keras.ops.ones((2, 3, 5))
    >>> tuple(head(hidden).shape), tuple(head.sense_log_probs(hidden).shape)
    ((2, 3, 11), (2, 3, 29))
    >>> tuple(head.sense_posteriors(hidden, keras.ops.ones((2, 3), "int32")).shape)
    (2, 3, 4)

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274)
    """

    composition: MultiSense
    _least_tile_bytes = 192 * 2**20  # there are more labels than words

    def __init__(
        self,
        vocabulary_size: int,
        embedding: keras.layers.Embedding | None = None,
        num_senses: int | None = None,
        min_senses: int | None = None,
        max_senses: int | None = None,
        variant: str | None = None,
        dynamic_allocation: bool | None = None,
        usage_by: str | None = None,
        senses_start: str | None = None,
        use_bias: bool = False,
        **kwargs: Any,
    ):
        given = {
            "num_senses": num_senses,
            "min_senses": min_senses,
            "max_senses": max_senses,
            "variant": variant,
            "dynamic_allocation": dynamic_allocation,
            "usage_by": usage_by,
            "senses_start": senses_start,
        }
        score = composition = None  # the embedding's
        if not isinstance(embedding, SenseEmbedding):
            variant = "paper" if variant is None else variant
            if variant not in VARIANTS:
                raise ValueError(
                    f"`variant` must be one of {VARIANTS}. Received: variant={variant!r}"
                )
            score = InnerProduct() if variant == "inner_product" else KerBSKernel(variant)
            composition = MultiSense(
                vocabulary_size,
                num_senses,
                1 if min_senses is None else min_senses,
                4 if max_senses is None else max_senses,
                True if dynamic_allocation is None else dynamic_allocation,
                "posterior" if usage_by is None else usage_by,
                dtype=kwargs.get("dtype"),
            )
        super().__init__(
            vocabulary_size,
            embedding,
            score=score,
            composition=composition,
            use_bias=use_bias,
            **kwargs,
        )
        senses = self.allocation
        self.num_senses = senses.num_senses
        self.min_senses = senses.min_senses
        self.max_senses = senses.max_senses
        self.dynamic_allocation = senses.dynamic
        self.usage_by = senses.usage_by
        self.senses_start = "random" if senses_start is None else senses_start
        if isinstance(embedding, SenseEmbedding):
            self.senses_start = embedding.senses_start
        check_senses_start(self.senses_start)
        self.variant = "inner_product"
        if isinstance(self.score, KerBSKernel):
            self.variant = self.score.variant
        for name, value in given.items():
            if value not in (None, getattr(self, name)):
                raise ValueError(
                    f"`{name}` must be None or {getattr(self, name)!r}, as in `embedding`. "
                    f"Received: {name}={value!r}"
                )

    @property
    def allocation(self) -> SenseAllocation:
        return self.composition.allocation

    @property
    def theta(self) -> Tensor | None:
        return self.score_parameters[0] if self.score_parameters else None

    def sense_log_probs(self, hidden: Tensor) -> Tensor:
        """Computes the log-probabilities of all M senses, which are normalised over all senses.

        Args:
            hidden: Hidden states `[..., d_h]`.

        Returns:
            `[..., M]`, float32.
        """
        scores, _ = self._scores(hidden, self.encoded_labels())
        log_probs = ops.log_softmax(scores[:, 0])
        return ops.reshape(log_probs, (*ops.shape(hidden)[:-1], self.num_senses))

    def sense_posteriors(self, hidden: Tensor, words: Tensor) -> Tensor:
        """Computes the probability of each sense of a word, given the word and a hidden state.

        Args:
            hidden: `[..., d_h]`, the hidden states from which the words are predicted.
            words: `[...]` integers, one word for each hidden state.

        Returns:
            `[..., S]` with S = `max_senses`: probabilities of the senses of each word, in the order
            of `allocation.senses_of_word[words]`, padded with 0 for words with fewer senses.
        """
        contexts, _ = self._contexts(hidden, training=False)
        columns, mask = self.allocation.columns(ops.reshape(words, (-1,)))  # [N, S]
        labels = ops.take(self.encoded_labels(), columns, axis=0)
        parameters = [ops.take(p, columns, axis=0) for p in self.score_parameters]
        scores = self.score.pair_scores(contexts[:, 0], labels, parameters)
        if self.use_bias:
            scores = scores + ops.take(self.bias, columns, axis=0)
        if self.logit_soft_cap is not None:
            scores = self.logit_soft_cap * ops.tanh(scores / self.logit_soft_cap)
        scores = ops.where(mask, scores, ops.full_like(scores, float("-inf")))
        return ops.reshape(ops.softmax(scores), (*ops.shape(words), self.max_senses))

    def _labels_start(self) -> Any:
        return labels_start(self.embeddings_initializer, self.allocation, self.senses_start)

    def _bias_start(self) -> Any:
        return bias_start(self.bias_initializer, self.allocation, self.senses_start)

    def _make_folded(self, **arguments):
        return KernelizedBayesianSoftmax(
            self.vocabulary_size,
            num_senses=self.num_senses,
            min_senses=self.min_senses,
            max_senses=self.max_senses,
            variant=self.variant,
            dynamic_allocation=False,
            **arguments,
        )

    def get_config(self) -> dict:
        config = super().get_config()
        del config["score"], config["composition"]
        return {
            **config,
            "num_senses": self.num_senses,
            "min_senses": self.min_senses,
            "max_senses": self.max_senses,
            "variant": self.variant,
            "dynamic_allocation": self.dynamic_allocation,
            "usage_by": self.usage_by,
            "senses_start": self.senses_start,
        }
