from typing import Any

import keras
from keras import ops

from keras_drill.layers import LSTM
from keras_drill.models.recurrent_backbone import RecurrentBackbone
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class AWDLSTM(RecurrentBackbone):
    """Backbone of the AWD-LSTM language model: the model without the output layer.

    Use this model as the backbone of a `keras_drill.LanguageModel`. Let E be the embedding matrix
    and L the number of layers.

        x^0 = D_input(D_embedding(E[tokens]))
        x^l = D_hidden(LSTM_l(x^{l-1})),  l = 1, ..., L - 1
        raw = LSTM_L(x^{L-1}),    hidden = D(raw)     of size `output_dim`
        losses: AR = α mean(hidden²),    TAR = β mean((raw_t − raw_{t-1})²)       in training

    AR and TAR are the activation regularization and the temporal activation regularization, with
    factors α and β. Every D is a dropout whose mask is shared by all time steps. D_embedding drops
    whole words, at all their positions in a batch. In all LSTMs, entries of the recurrent matrix
    are dropped. By default the last layer has the size of the embeddings, so that the output layer
    can share them. The default rates are the paper's rates for WikiText-2 and Penn Treebank.

    Input shape: tokens `[B, T]` int, B sequences of T tokens. Output shape: `[B, T, output_dim]`,
    the hidden states.

    Call arguments:
        tokens: `[B, T]` int.
        initial_state: `None`, or a flat list of the states of all layers, in order, as the method
            `initial_state(batch_size)` returns them: h and c of each LSTM, `[B, H]` with the H
            units of the LSTM. If given, the call neither reads nor writes the state that a stateful
            backbone carries from batch to batch.
        return_state: Whether to return `(hidden, new_state)`, with such a list as `new_state`.
        mask: `None`, or bool `[B, T]`. Steps whose mask is false do not change the state. So after
            prompts of different lengths, each row has the state of its last unmasked word.
        training: Whether to use dropout and to add AR and TAR.

    Args:
        vocabulary_size: Number of words V.
        embedding_dim: Size of the embeddings.
        units: Size of all LSTM layers except the last one.
        num_layers: Number of LSTM layers L.
        output_dim: Size of the last layer; `None` for `embedding_dim`.
        dropout: Rate on the outputs of the last layer.
        hidden_dropout: Rate on the outputs of the other layers.
        input_dropout: Rate on the entries of the embedded words.
        embedding_dropout: Probability of dropping a word of the vocabulary.
        weight_dropout: Rate on the entries of the recurrent matrices, with one mask for each batch.
        activation_regularization: Factor α of AR, the mean square of the outputs after dropout.
        temporal_activation_regularization: Factor β of TAR, the mean square of the changes of the
            outputs from step to step, before dropout.
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

    >>> backbone = keras_drill.models.AWDLSTM(31, embedding_dim=5, units=7, num_layers=2)
    >>> tokens = keras.ops.array([[3, 1, 4], [1, 5, 9]])
    >>> hidden, state = backbone(tokens, return_state=True)
    >>> tuple(hidden.shape), len(state)
    ((2, 3, 5), 4)
    >>> hidden, state = backbone(tokens[:, :1], initial_state=state, return_state=True)
    >>> tuple(hidden.shape)
    (2, 1, 5)

    References:
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182)
    """

    layer_class = LSTM

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 400,
        units: int = 1150,
        num_layers: int = 3,
        output_dim: int | None = None,
        dropout: float = 0.4,
        hidden_dropout: float = 0.25,
        input_dropout: float = 0.65,
        embedding_dropout: float = 0.1,
        weight_dropout: float = 0.5,
        activation_regularization: float = 2.0,
        temporal_activation_regularization: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(
            vocabulary_size,
            embedding_dim,
            units,
            num_layers,
            output_dim,
            dropout,
            hidden_dropout,
            input_dropout,
            embedding_dropout,
            layer_arguments={"weight_dropout": weight_dropout, "unit_forget_bias": False},
            **kwargs,
        )
        self.weight_dropout = weight_dropout
        self.activation_regularization = activation_regularization
        self.temporal_activation_regularization = temporal_activation_regularization

    def regularize_activations(self, raw: Tensor, dropped: Tensor) -> None:
        raw, dropped = ops.cast(raw, "float32"), ops.cast(dropped, "float32")
        if self.activation_regularization:
            self.add_loss(self.activation_regularization * ops.mean(ops.square(dropped)))
        if self.temporal_activation_regularization:
            change = ops.sum(ops.square(raw[1:] - raw[:-1]))
            count = ops.maximum(ops.size(raw[1:]), 1)  # a batch may hold one time step
            self.add_loss(
                self.temporal_activation_regularization * change / ops.cast(count, "float32")
            )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "weight_dropout": self.weight_dropout,
            "activation_regularization": self.activation_regularization,
            "temporal_activation_regularization": self.temporal_activation_regularization,
        }
