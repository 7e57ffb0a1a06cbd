import keras

from keras_drill.layers import GRU
from keras_drill.models.recurrent_backbone import RecurrentBackbone


@keras.saving.register_keras_serializable(package="keras_drill")
class GRULanguageBackbone(RecurrentBackbone):
    """Backbone of a GRU language model: the model without the output layer.

    Use this model as the backbone of a `keras_drill.LanguageModel`. Let E be the embedding matrix
    and L the number of layers.

        x^0 = D_input(D_embedding(E[tokens]))
        x^l = D_hidden(GRU_l(x^{l-1})),    l = 1, ..., L - 1
        hidden = D(GRU_L(x^{L-1}))

    Every D is a dropout whose mask is shared by all time steps. D_embedding drops whole words, at
    all their positions in a batch. By default the last layer has the size of the embeddings, so
    that the output layer can share them.

    Input shape: tokens `[B, T]` int, B sequences of T tokens. Output shape: `[B, T, output_dim]`,
    the hidden states.

    Call arguments: as for `keras_drill.models.AWDLSTM`, but a layer has only one state h, and
    `training` adds no losses.

    Args:
        vocabulary_size: Number of words V.
        embedding_dim: Size of the embeddings.
        units: Size of all GRU layers except the last one.
        num_layers: Number of GRU layers L.
        output_dim: Size of the last layer; `None` for `embedding_dim`.
        dropout: Rate on the outputs of the last layer.
        hidden_dropout: Rate on the outputs of the other layers.
        input_dropout: Rate on the entries of the embedded words.
        embedding_dropout: Probability of dropping a word of the vocabulary.
        stateful: Whether each batch starts from the last state of the previous batch. Default:
            `False`. `reset_state()` sets the state to zero.
        batch_size: Rows of every batch; required with `stateful=True` if the batch size is not
            known from the data's static shape. Default: `None`.
        seed: Integer seed of all random choices, or `None` (default) for a random seed.
        embedding: The embedding of the words, of width `embedding_dim`: a `keras.layers.Embedding`
            or a `keras_drill.SenseEmbedding`; `None` (default) creates an `Embedding`. With a
            `SenseEmbedding` of weighting "posterior", a word's embedding depends on the output of
            the previous step. All layers then run in one time loop, which is slower.
        **kwargs: Keyword arguments of `keras.Model`.

    Example:

    >>> backbone = keras_drill.models.GRULanguageBackbone(31, 5, units=7, num_layers=2)
    >>> tuple(backbone(keras.ops.array([[3, 1, 4], [1, 5, 9]])).shape)
    (2, 3, 5)

    References:
        - [Cho et al., 2014](https://arxiv.org/abs/1406.1078)
    """

    layer_class = GRU
