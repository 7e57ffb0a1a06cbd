"""Embeddings of words by the posterior of their senses, given the output of the previous step."""

from typing import Any

from keras import ops

from keras_drill.layers.attention_feedback import AttentionFeedback
from keras_drill.layers.output_feedback import OutputFeedback
from keras_drill.senses import SenseEmbedding


def weighs_by_posterior(embedding: Any) -> bool:
    """Whether a word's embedding depends on the output of the previous step."""
    return isinstance(embedding, SenseEmbedding) and embedding.weighting == "posterior"


class SenseFeedback(OutputFeedback):
    """Computes the expected sense embedding of a word, given the output that predicted the word.

        x_t = Σ_j P(sense j of word t | h_{t-1}) w_j

    w_j is the embedding of sense j.

    Args:
        embedding: A `keras_drill.SenseEmbedding`.
        words: `[T, B]` integers.
        kept_words: Dropout factors `[T, B, 1]` of the words' embeddings, without gradient.
    """

    def __init__(self, embedding, words, kept_words):
        senses, mask, _, *parameters = embedding.look_up(words)  # [T, B, S, d], [T, B, S] ...
        super().__init__(
            embedding.output_dim, steps=[senses, *parameters], fixed=[mask, kept_words]
        )
        self.embedding = embedding

    def value(self, output, steps, fixed, shared):
        (senses, *parameters), (mask, kept_words) = steps, fixed
        x = self.embedding.weigh(senses, mask, None, *parameters, context=output)
        return ops.cast(x, kept_words.dtype) * kept_words, []

    def gradient(self, d_x, output, steps, fixed, shared, residuals):
        (senses, *parameters), (mask, kept_words) = steps, fixed
        d_output, d_senses, d_parameters = self.embedding.weigh_gradient(
            d_x * kept_words, senses, mask, parameters, output
        )
        return d_output, [d_senses, *d_parameters]


class AttentiveSenseFeedback(OutputFeedback):
    """Computes the expected sense embedding of a word, given the attentional state a_{t-1}.

        x_t = [Σ_j P(sense j of word t | D(a_{t-1})) w_j; a_{t-1}]

    w_j is the embedding of sense j. The second part is input feeding, and is optional. D is the
    dropout on the output layer's input.

    Args:
        senses: A `SenseFeedback` whose output is D(a).
        attention: An `AttentionFeedback`, which computes a from the decoder's last state.
        kept: Factors of a, `[B, d]`, without gradient.
        is_fed: Whether x_t contains the second part, a_{t-1}.
    """

    def __init__(
        self, senses: SenseFeedback, attention: AttentionFeedback, kept: Any, is_fed: bool
    ):
        self.senses = senses
        self.attention = attention
        self.kept = kept
        self.is_fed = is_fed
        dtype = attention.attentional_state.compute_dtype
        super().__init__(
            senses.size + (attention.size if is_fed else 0),
            senses.steps,
            [*senses.fixed, *attention.fixed],
            attention.shared,
            residuals=[ops.zeros((ops.shape(kept)[0], attention.size), dtype)],
        )

    def value(self, output, steps, fixed, shared):
        a, _ = self.attention.value(output, [], fixed[2:], shared)
        x, _ = self.senses.value(self._drop(a), steps, fixed[:2], [])
        if self.is_fed:
            x = ops.concatenate([x, ops.cast(a, x.dtype)], axis=-1)
        return x, [a]

    def gradient(self, d_x, output, steps, fixed, shared, residuals):
        d_a, d_steps = self._gradient_at_state(d_x, steps, fixed, residuals)
        d_output, _ = self.attention.gradient(d_a, output, [], fixed[2:], shared, [])
        return d_output, d_steps

    def shared_gradient(self, d_x, outputs, steps, fixed, shared, residuals):
        d_a, _ = self._gradient_at_state(d_x, steps, fixed, residuals)
        return self.attention.shared_gradient(d_a, outputs, [], fixed[2:], shared, [])

    def _gradient_at_state(self, d_x, steps, fixed, residuals):
        """Returns the gradients with respect to a and the senses' `steps`, of one or all steps."""
        d_sense = d_x[..., : self.senses.size]
        context = self._drop(residuals[0])
        d_context, d_steps = self.senses.gradient(d_sense, context, steps, fixed[:2], [], [])
        d_a = ops.cast(d_context, d_x.dtype) * ops.cast(self.kept, d_x.dtype)
        return (d_a + d_x[..., self.senses.size :] if self.is_fed else d_a), d_steps

    def _drop(self, a):
        return a * ops.cast(self.kept, a.dtype)
