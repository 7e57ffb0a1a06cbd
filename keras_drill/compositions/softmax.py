import keras
from keras import ops

from keras_drill.compositions.composition import Composition
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class Softmax(Composition):
    """Softmax of scores s, one per word: `p(y) = exp(s_y) / sum_j exp(s_j)`, with words y and j.

    This is the default of the argument `composition` of `keras_drill.OutputLayer`.
    """

    has_logits = True

    def contexts(self, hidden: Tensor, training: bool | None = None) -> tuple[Tensor, None]:
        return ops.reshape(hidden, (-1, 1, hidden.shape[-1])), None

    def columns(self, targets: Tensor) -> tuple[Tensor, None]:
        return targets[:, None], None

    def log_probs(self, scores: Tensor, log_priors: Tensor | None) -> Tensor:
        return ops.log_softmax(self.logits(scores))

    def logits(self, scores: Tensor) -> Tensor:
        return scores[:, 0]
