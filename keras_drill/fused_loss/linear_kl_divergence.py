import keras
from keras import ops

from keras_drill.fused_loss.distillation_options import make_distillation
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.linear_loss import check_leading_axes, check_linear, linear_loss
from keras_drill.ops.token_weights import at_least_one_token
from keras_drill.scores.inner_product import InnerProduct
from keras_drill.types import Tensor


def linear_kl_divergence(
    hidden: Tensor,
    labels: Tensor,
    teacher_hidden: Tensor,
    teacher_labels: Tensor,
    bias: Tensor | None = None,
    teacher_bias: Tensor | None = None,
    *,
    divergence: str = "forward_kl",
    beta: float = 0.5,
    temperature: float = 1.0,
    targets: Tensor | None = None,
    cross_entropy_weight: float = 0.5,
    sample_weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    logit_soft_cap: float | None = None,
    teacher_logit_soft_cap: float | None = None,
    label_gradient: bool | None = None,
    training: bool = True,
    tile_size: int | None = None,
    tile_bytes: int | None = None,
) -> Tensor:
    """Computes the divergence of the word probabilities of a student from those of a teacher.

    Student and teacher are linear output layers with softmax. The function stores no complete
    matrices of logits. The labels here are output embeddings of words, not the classes to predict
    (`targets`).

    Let `s = hidden . labels^T + bias` be the student's logits, and `t` the teacher's logits,
    computed in the same way. With a soft cap c, logits are capped to `c * tanh(s / c)`. With
    `q = softmax(s / temperature)` and `p = softmax(t / temperature)`, the loss of a token is
    `temperature^2` times

        "forward_kl"        KL(p || q) = sum p (log p - log q)
        "reverse_kl"        KL(q || p)
        "jensen_shannon"    beta KL(p || m) + (1 - beta) KL(q || m),  m = beta p + (1 - beta) q

    With `targets` y, the loss is `w CE + (1 - w) L`, where w is `cross_entropy_weight`, L is the
    loss above and CE is the cross-entropy `logsumexp(s) - s_y` at temperature 1. The factor
    `temperature^2` keeps gradients at a similar size for all temperatures. For high temperatures,
    the loss of both KL divergences approaches `sum (s - t)^2 / (2 V)`, where the sum is over the V
    words, and s and t are shifted to mean 0.

    The loss is exact, with exact gradients for `hidden`, `labels`, `bias` and `sample_weight`; the
    teacher is a constant. The function processes one group of tokens (a tile) at a time, as
    `keras_drill.ops.linear_cross_entropy` does, and runs in the same environments.

    Shape letters: N tokens (of all axes `...` together), hidden states of width d (student) and d_t
    (teacher), V words.

    - *Precision*: matrix products are in the dtype of `hidden`, and for the teacher in the dtype of
      `teacher_hidden`, which may differ. All other computations are in float32, or in float64 if
      `hidden` is.
    - *Cost*: one matrix product of the size `[N, d_t]` times `[d_t, V]` for the teacher, and three
      of `[N, d]` times `[d, V]` for the student (two if labels get no gradient, one with
      `training=False`). `reduction="none"` computes the logits again for the gradients.
    - *Memory*, beyond arguments and gradients: one tile of logits of student and teacher
      (`tile_bytes`), and on CPUs a few buffers of 32 MiB.

    Second derivatives are not supported.

    Args:
        hidden: `[..., d]`, floats, hidden states of the student.
        labels: `[V, d]`, output embeddings of the student, a tensor or a variable.
        teacher_hidden: `[..., d_t]`, floats, hidden states of the teacher for the same tokens.
        teacher_labels: `[V, d_t]`, output embeddings of the teacher for the same words.
        bias, teacher_bias: `[V]`, the biases of student and teacher, or `None`.
        divergence: "forward_kl", "reverse_kl" or "jensen_shannon", see above.
        beta: Weight of the teacher in the Jensen-Shannon divergence, in (0, 1).
        temperature: Positive number, which divides the logits of student and teacher in the
            divergence.
        targets: `[...]`, integers in `[0, V)`, or `None` to learn from the teacher alone.
        cross_entropy_weight: Weight of the targets' cross-entropy, in [0, 1). Ignored without
            `targets`.
        sample_weight: Weights or a mask of the shape `[...]` of the tokens, or of its first axes
            (for example one weight per sequence); `None` is 1. Tokens of weight 0 are skipped, and
            may have any target and hidden states, even NaN.
        ignore_index: Tokens with this target have weight 0; `None` for no such target. Ignored
            without `targets`.
        reduction: "mean", the weighted mean `sum(weight * loss) / sum(weight)`, or 0 if all weights
            are 0; "sum"; or "none", `weight * loss` of every token.
        logit_soft_cap, teacher_logit_soft_cap: Smooth bounds c of the logits of student and
            teacher, or `None`.
        label_gradient, training, tile_size, tile_bytes: As in
            `keras_drill.ops.linear_cross_entropy`.

    Returns:
        A scalar, or `[...]` with `reduction="none"`; float32 (float64 if `hidden` is).

    Raises:
        ValueError: An argument is invalid, or a target is out of range; see
            `keras_drill.ops.linear_cross_entropy` for compiled functions.

    Example:

    >>> hidden = keras.random.normal((2, 3, 5), seed=1)
    >>> labels = keras.random.normal((11, 5), seed=2)
    >>> teacher_hidden = keras.random.normal((2, 3, 7), seed=3)
    >>> teacher_labels = keras.random.normal((11, 7), seed=4)
    >>> arguments = hidden, labels, teacher_hidden, teacher_labels
    >>> loss = keras_drill.ops.linear_kl_divergence(*arguments)
    >>> log_p = keras.ops.log_softmax(teacher_hidden @ keras.ops.transpose(teacher_labels))
    >>> log_q = keras.ops.log_softmax(hidden @ keras.ops.transpose(labels))
    >>> losses = keras.ops.sum(keras.ops.exp(log_p) * (log_p - log_q), axis=-1)
    >>> bool(abs(float(loss) - float(keras.ops.mean(losses))) < 1e-5)
    True

    References:
        - [Hinton et al., 2015](https://arxiv.org/abs/1503.02531)
        - [Agarwal et al., 2024](https://arxiv.org/abs/2306.13649) (generalised Jensen-Shannon)
    """
    hidden = ops.convert_to_tensor(hidden)
    teacher_hidden, teacher_labels = (
        ops.stop_gradient(ops.convert_to_tensor(x)) for x in (teacher_hidden, teacher_labels)
    )
    check_linear(
        teacher_hidden, teacher_labels, teacher_bias, teacher_logit_soft_cap, prefix="teacher_"
    )
    width = teacher_labels.shape[1]
    teacher_hidden = check_leading_axes("teacher_hidden", teacher_hidden, hidden, (width,))
    num_words = ops.shape(labels)[0]
    if teacher_labels.shape[0] != num_words:
        raise ValueError(
            f"`teacher_labels` must have one row for each of the student's {num_words} words. "
            f"Received: teacher_labels of shape {tuple(teacher_labels.shape)}"
        )
    teacher_options = WalkOptions(
        InnerProduct(),
        compute_dtype=keras.backend.standardize_dtype(teacher_hidden.dtype),
        logit_soft_cap=teacher_logit_soft_cap,
    )
    weight = 0.0 if targets is None else cross_entropy_weight

    def teacher(weights):
        rows = ops.reshape(teacher_hidden, (-1, width))
        rows, no_targets, _ = at_least_one_token(
            rows, ops.zeros(ops.shape(rows)[:1], "int32"), None, "float32"
        )
        return WalkInputs(
            contexts=rows[:, None],
            log_priors=None,
            labels=teacher_labels,
            bias=None
            if teacher_bias is None
            else ops.stop_gradient(ops.convert_to_tensor(teacher_bias)),
            score_parameters=(),
            columns=no_targets[:, None],
        ), True

    return linear_loss(
        hidden,
        labels,
        targets,
        bias,
        sample_weight=sample_weight,
        ignore_index=ignore_index if targets is not None else None,
        reduction=reduction,
        label_gradient=label_gradient,
        training=training,
        tile_bytes=tile_bytes,
        logit_soft_cap=logit_soft_cap,
        tile_size=tile_size,
        teacher=teacher,
        distillation=make_distillation(divergence, beta, temperature, weight, teacher_options),
    )
