"""Words that are embedded by the posterior of their senses, given the last output."""

from keras import ops

from keras_drill.layers.output_feedback import OutputFeedback


class SenseFeedback(OutputFeedback):
    """The expected sense of a word, given the output that predicted it.

        x_t = Σ_j P(sense j of word t | h_{t-1}) w_j

    Args:
        embedding: A `keras_drill.SenseEmbedding`.
        words: `[T, B]` integers.
        kept_words: Factors of the words' embeddings, `[T, B, 1]`. No derivative.
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
