import keras
from keras import ops

from keras_drill.compositions.composition import Composition


@keras.saving.register_keras_serializable(package="keras_drill")
class Softmax(Composition):
    """One context a token, one label a word: `p(y) = exp(s_y) / sum_j exp(s_j)`."""

    def contexts(self, hidden, training=None):
        return ops.reshape(hidden, (-1, 1, hidden.shape[-1])), None

    def columns(self, targets):
        return targets[:, None], None

    def log_probs(self, scores, log_priors):
        return ops.log_softmax(scores[:, 0])
