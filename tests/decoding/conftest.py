import keras
import numpy as np
import pytest
from keras import ops

V, D, U = 23, 5, 7


class TinyBackbone(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(V, D, embeddings_initializer="normal")
        self.cell = keras.layers.GRUCell(D)

    def initial_state(self, batch_size):
        return [ops.zeros((batch_size, D))]

    def call(self, tokens, initial_state=None, return_state=False, training=None):
        x = self.embedding(tokens)
        s = self.initial_state(ops.shape(x)[0]) if initial_state is None else initial_state
        out = []
        for t in range(x.shape[1]):
            h, s = self.cell(x[:, t], s)
            out.append(h)
        h = ops.stack(out, 1)
        return (h, list(s)) if return_state else h


class TinyHead(keras.layers.Layer):
    vocabulary_size = V

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(
            V, kernel_initializer=keras.initializers.RandomNormal(stddev=3)
        )

    def call(self, h):
        return ops.log_softmax(self.dense(h))

    def folded(self):
        return self


class TinyModel:
    def __init__(self):
        keras.utils.set_random_seed(3)
        self.backbone, self.head = TinyBackbone(), TinyHead()
        self(np.zeros((1, 1), "int32"))

    def __call__(self, tokens):
        return self.head(self.backbone(tokens))


@pytest.fixture(scope="session")
def model():
    return TinyModel()
