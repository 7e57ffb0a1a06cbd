"""Distillation of an output layer from a teacher's output layer."""

from typing import NamedTuple

import keras
from keras import ops

from keras_drill.fused_loss.distillation_options import make_distillation
from keras_drill.fused_loss.inputs import Distillation, WalkInputs
from keras_drill.output_layer import losses
from keras_drill.output_layer.output_layer import OutputLayer
from keras_drill.types import Tensor


class HeadTeacher(NamedTuple):
    """A teacher for `losses.loss_and_statistics`.

    Attributes:
        head: The teacher's output layer, of any kind. It receives no gradients.
        hidden: The teacher's hidden states `[..., d_t]`.
        divergence, beta, temperature, cross_entropy_weight: As in
            `keras_drill.ops.linear_kl_divergence`.
    """

    head: OutputLayer
    hidden: Tensor
    divergence: str
    beta: float
    temperature: float
    cross_entropy_weight: float

    def walk_inputs(self) -> WalkInputs:
        """Returns the teacher's input tensors of the fused loss."""
        no_targets = ops.zeros(ops.shape(self.hidden)[:-1], "int32")
        inputs, *_ = losses.walk_inputs(
            self.head, losses.check_hidden(self.head, self.hidden), no_targets, None, training=False
        )
        inputs = inputs._replace(word_labels=self.head.composition.word_labels())
        return keras.tree.map_structure(_constant, inputs)

    def distillation(self) -> Distillation:
        """Returns the options of the distillation for the fused loss."""
        return make_distillation(
            self.divergence,
            self.beta,
            self.temperature,
            self.cross_entropy_weight,
            self.head._options(),
        )


def check_student(head: OutputLayer) -> None:
    """Raises `ValueError` for a head that cannot learn from a teacher."""
    composition = head.composition
    if composition.num_contexts > 1 or composition.words_of_labels() is not None:
        raise ValueError(
            "`student` must have an output layer with one label per word and one context per "
            "token, such as a TiedOutput or a DrillOutput: the fused divergence does not support "
            "MixtureOfSoftmaxes and KernelizedBayesianSoftmax. The teacher may be of any kind. "
            f"Received: student.head={head!r}"
        )


def _constant(x):
    return None if x is None else ops.stop_gradient(ops.convert_to_tensor(x))
