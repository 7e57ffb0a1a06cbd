"""The teacher's part of the loss of a tile, and of the gradient. Shape letters: see `walk`."""

from typing import NamedTuple

from keras_drill.fused_loss.inputs import Distillation
from keras_drill.types import Tensor


class TeacherTile(NamedTuple):
    """Inputs of the divergence of a tile's tokens and of its gradients.

    Attributes:
        log_probs: Log-probabilities of the teacher, a list of `[T, B]`, one for each block of the
            student's labels.
        teacher_normalizer: `[T]`, the log-normaliser of `log_probs` at the temperature, or `None`.
        normalizer: `[T]`, the log-normaliser of the student's logits at the temperature.
        sums: Tuple of `[T]`, the sums of the divergence over all words.
    """

    log_probs: list
    teacher_normalizer: Tensor | None
    normalizer: Tensor
    sums: tuple

    def of_block(self, k: int) -> tuple:
        """Returns the inputs of `block_derivative` for block number `k`."""
        return self.log_probs[k], self.teacher_normalizer, self.normalizer, self.sums


def block_derivative(distillation: Distillation, of_targets, scores, teacher_block: tuple):
    """Returns the derivative `[T, B]` of the mixed loss with respect to a block's scores.

    Args:
        distillation: `Distillation`.
        of_targets: The targets' part, or `None` if its weight is 0.
        scores: `[T, B]`.
        teacher_block: Result of `TeacherTile.of_block`.
    """
    log_probs, teacher_normalizer, normalizer, sums = teacher_block
    log_p, log_q = both(distillation, scores, log_probs, teacher_normalizer, normalizer)
    of_teacher = distillation.divergence.derivative(log_p, log_q, sums)
    return distillation.mix(of_targets, of_teacher, power=1)


def both(distillation: Distillation, scores, log_probs, teacher_normalizer, normalizer):
    """Returns log-probabilities `[T, B]` of teacher and student at the temperature."""
    temperature = distillation.temperature
    log_q = tempered(scores, temperature) - normalizer[:, None]
    if teacher_normalizer is None:
        return log_probs, log_q
    return tempered(log_probs, temperature) - teacher_normalizer[:, None], log_q


def tempered(scores: Tensor, temperature: float) -> Tensor:
    """Returns logits at a temperature."""
    return scores if temperature == 1 else scores / temperature
