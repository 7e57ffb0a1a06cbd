import keras

from keras_drill.layers import GRU
from keras_drill.models.recurrent_backbone import RecurrentBackbone


@keras.saving.register_keras_serializable(package="keras_drill")
class GRULanguageBackbone(RecurrentBackbone):
    """Backbone of a GRU language model: the model without the output layer.

    Let E be the embedding matrix and L the number of layers.

        x^0 = D_input(D_embedding(E[tokens])),    x^l = D_hidden(GRU_l(x^{l-1}))
        hidden = D(GRU_L(x^{L-1}))

    Every D is a dropout whose mask is shared by all time steps; D_embedding drops whole words. The
    last layer has the size of the embeddings, so that the output layer can share them.

    Input shape: tokens `[B, T]` int. Output shape: `[B, T, output_dim]`.

    Call arguments: as for `keras_drill.models.AWDLSTM`.

    Args:
        vocabulary_size: number of words V.
        embedding_dim: size of the embeddings.
        units: size of all GRU layers except the last one.
        num_layers: number of GRU layers.
        output_dim: size of the last layer; `None` for `embedding_dim`.
        dropout: rate on the outputs of the last layer.
        hidden_dropout: rate between layers.
        input_dropout: rate on the embedded words.
        embedding_dropout: rate of dropping a word of the vocabulary.
        stateful: whether to carry the state from batch to batch; `reset_state()` zeroes the state.
        batch_size: required with `stateful` if the first axis of batches is dynamic.
        seed: integer for all random choices, or `None` for a random seed.
        embedding: the embedding of the words: a `keras.layers.Embedding` or a
            `keras_drill.SenseEmbedding`; `None` creates an `Embedding`. With a `SenseEmbedding` of
            weighting "posterior", a word's embedding depends on the output of the previous step.
            All layers then run in one time loop, which is slower.

    Example:

    >>> backbone = GRULanguageBackbone(vocabulary_size=31, embedding_dim=5, units=7, num_layers=2)
    >>> tuple(backbone(keras.ops.array([[3, 1, 4], [1, 5, 9]])).shape)
    (2, 3, 5)

    References:
        - [Cho et al., 2014](https://arxiv.org/abs/1406.1078)
    """

    layer_class = GRU
