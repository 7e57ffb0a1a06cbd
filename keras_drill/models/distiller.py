from typing import Any

import keras
from keras import ops

from keras_drill.fused_loss.distillation_options import make_distillation
from keras_drill.models.fused_loss_model import FusedLossModel
from keras_drill.models.preprocessed_model import PreprocessedModel
from keras_drill.models.training_step import StepOutput, is_stepping, stepping
from keras_drill.output_layer.distillation import HeadTeacher, check_student
from keras_drill.output_layer.losses import loss_and_statistics
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class Distiller(PreprocessedModel, FusedLossModel):  # type: ignore[misc]  # Keras' arguments
    """Distills a larger model, the teacher, into a smaller one, without matrices of logits.

    The loss combines the student's cross-entropy CE of the targets with the divergence of the
    teacher's and the student's word probabilities, p and q:

        cross_entropy_weight CE(targets) + (1 - cross_entropy_weight) temperature^2 divergence

    `keras.distillation.Distiller` with `LogitsDistillation` stores the logits of both models,
    several matrices `[tokens, vocabulary_size]`. This class stores none of them: the output
    layers of both models compute loss and gradients together, for a small group of tokens (a tile)
    at a time. See `keras_drill.ops.linear_kl_divergence` for all formulas.

    `fit`, `evaluate`, `compile` and metrics work as for the student: metrics receive the student's
    log-probability of each target. `predict` and calls return the student's log-probabilities.
    After training, use `distiller.student`, which is trained in place.

    The two models read the same inputs and have the same words with the same ids. Their backbones
    and output layers may differ. The teacher may have any output layer. The student's output layer
    must have one label (output embedding) per word (softmax, weight tying, bilinear, dual
    nonlinear, DRILL).

    Args:
        teacher: A trained `keras_drill.LanguageModel` or `SequenceToSequence`. Freeze the teacher
            by `teacher.trainable = False`. The teacher runs without dropout.
        student: A model of the same class, usually smaller. The distiller uses its
            `label_smoothing`, `reduction` and `preprocessor`.
        divergence: "forward_kl" for KL(p || q), "reverse_kl" for KL(q || p), or "jensen_shannon".
        beta: Weight of the teacher in the Jensen-Shannon divergence, in (0, 1):
            `beta KL(p || m) + (1 - beta) KL(q || m)` with `m = beta p + (1 - beta) q`. Other
            divergences ignore `beta`.
        temperature: Number above 0 by which the logits of both models are divided for p and q. The
            cross-entropy uses temperature 1.
        cross_entropy_weight: Weight of the targets' cross-entropy, in [0, 1).
        **kwargs: Keyword arguments of `keras.Model`.

    Raises:
        ValueError: The teacher is trainable, not built, or has another vocabulary size. The
            student's output layer has several labels per word or several hidden states per token,
            as in a mixture of softmaxes. An argument is out of range.

    Example:

    >>> def language_model(width):
    ...     embedding = keras.layers.Embedding(31, width)
    ...     lstm = keras.layers.LSTM(width, return_sequences=True)
    ...     model = keras_drill.LanguageModel(
    ...         keras.Sequential([embedding, lstm]), keras_drill.TiedOutput(31, embedding)
    ...     )
    ...     model.build((None, None))
    ...     return model
    >>> teacher = language_model(width=23)
    >>> teacher.trainable = False
    >>> distiller = keras_drill.Distiller(teacher, language_model(width=7), temperature=2.0)
    >>> distiller.compile("adam", metrics=[keras_drill.metrics.Perplexity()])
    >>> tokens = np.arange(21).reshape(3, 7)
    >>> history = distiller.fit(tokens, tokens + 1, verbose=0)
    >>> distiller.student.predict(tokens, verbose=0).shape
    (3, 7, 31)

    References:
        - [Hinton et al., 2015](https://arxiv.org/abs/1503.02531)
        - [Agarwal et al., 2024](https://arxiv.org/abs/2306.13649)
    """

    def __init__(
        self,
        teacher: FusedLossModel,
        student: FusedLossModel,
        divergence: str = "forward_kl",
        beta: float = 0.5,
        temperature: float = 1.0,
        cross_entropy_weight: float = 0.5,
        **kwargs: Any,
    ):
        for name, model in (("teacher", teacher), ("student", student)):
            if not isinstance(model, FusedLossModel) or isinstance(model, Distiller):
                raise ValueError(
                    f"`{name}` must be a keras_drill.LanguageModel or SequenceToSequence. "
                    f"Received: {name}={model!r}"
                )
        super().__init__(
            student.backbone, student.head, student.label_smoothing, student.reduction, **kwargs
        )
        make_distillation(divergence, beta, temperature, cross_entropy_weight)  # checks them
        check_student(student.head)
        self.teacher = teacher
        self.student = student
        self.divergence = divergence
        self.beta = beta
        self.temperature = temperature
        self.cross_entropy_weight = cross_entropy_weight
        self.preprocessor = getattr(student, "preprocessor", None)
        self._check_teacher()
        self.built = student.built

    def _check_teacher(self) -> None:
        teacher, size = self.teacher, self.student.head.vocabulary_size
        if teacher.head.vocabulary_size != size:
            raise ValueError(
                f"`teacher` must have the student's vocabulary, {size} words. Received: a teacher "
                f"of {teacher.head.vocabulary_size} words"
            )
        if not (teacher.built and teacher.head.built):
            raise ValueError(
                "`teacher` must be a trained model: train it, or build it and load its weights. "
                "Received: a teacher that is not built"
            )
        trainable = [variable.path for variable in teacher.variables if variable.trainable]
        if trainable:
            raise ValueError(
                "`teacher` must be frozen: set `teacher.trainable = False`. Received: a teacher "
                f"with {len(trainable)} trainable variables, such as {trainable[0]!r}"
            )

    def build(self, inputs_shape: Any) -> None:
        self.student.build(inputs_shape)
        self.built = True

    def compile(self, *args: Any, **kwargs: Any) -> None:
        self._check_teacher()  # which may have been thawed
        super().compile(*args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None) -> Tensor | StepOutput:
        if not is_stepping(self):
            return self.student(inputs, training=training)
        with stepping(self.student):
            output = self.student(inputs, training=training)
        hidden = self.teacher.run_backbone(inputs, training=False)
        return output._replace(teacher_hidden=ops.stop_gradient(hidden))

    def choose_positions(self, weights: Tensor | None, targets: Tensor) -> Tensor | None:
        return self.student.choose_positions(weights, targets)

    def _evaluate(
        self, output: StepOutput, y, weights, label_smoothing, reduction, training
    ) -> tuple:
        teacher = HeadTeacher(
            self.teacher.head,
            output.teacher_hidden,
            self.divergence,
            self.beta,
            self.temperature,
            self.cross_entropy_weight,
        )
        return loss_and_statistics(
            self.head,
            output.hidden,
            y,
            weights,
            label_smoothing,
            reduction,
            training,
            self._wants_ranks,
            teacher,
        )

    def get_config(self) -> dict:
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.saving.serialize_keras_object(self.dtype_policy),
            "teacher": keras.saving.serialize_keras_object(self.teacher),
            "student": keras.saving.serialize_keras_object(self.student),
            "divergence": self.divergence,
            "beta": self.beta,
            "temperature": self.temperature,
            "cross_entropy_weight": self.cross_entropy_weight,
        }

    @classmethod
    def from_config(cls, config: dict) -> "Distiller":
        config = dict(config)
        teacher, student = (
            keras.saving.deserialize_keras_object(config.pop(name))
            for name in ("teacher", "student")
        )
        teacher.trainable = False
        return cls(teacher, student, **config)
