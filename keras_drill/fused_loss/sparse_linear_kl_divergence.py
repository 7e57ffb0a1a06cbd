import keras
from keras import ops

from keras_drill.fused_loss.distillation_options import (
    check_cross_entropy_weight,
    check_temperature,
)
from keras_drill.fused_loss.divergences import ForwardKL, ForwardKLWithRest
from keras_drill.fused_loss.inputs import Distillation, StoredTeacher
from keras_drill.fused_loss.linear_loss import check_leading_axes, linear_loss
from keras_drill.ops.check_targets import check_entries
from keras_drill.ops.token_weights import at_least_one_token
from keras_drill.types import Tensor

# The probabilities of log-probabilities in half precision do not sum to 1 exactly.
_TOLERANCE = 0.01


def sparse_linear_kl_divergence(
    hidden: Tensor,
    labels: Tensor,
    teacher_words: Tensor,
    teacher_log_probs: Tensor,
    bias: Tensor | None = None,
    *,
    rest: str = "bucket",
    temperature: float = 1.0,
    targets: Tensor | None = None,
    cross_entropy_weight: float = 0.5,
    sample_weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    logit_soft_cap: float | None = None,
    label_gradient: bool | None = None,
    training: bool = True,
    tile_size: int | None = None,
    tile_bytes: int | None = None,
) -> Tensor:
    """Computes the KL divergence of a student from a teacher with stored probabilities.

    For each token, you have stored the teacher's probabilities of some words, for example of the k
    most probable words. Only the forward KL divergence is defined for such data. Let p be the
    stored probabilities, and q the probabilities of the student, a linear output layer with
    softmax. The loss of a token is one of

        "bucket"         sum p (log p - log q) + p_rest (log p_rest - log q_rest)
        "renormalize"    sum p' (log p' - log q),    p' = p / sum p

    Sums are over the stored words, `p_rest = 1 - sum p` and `q_rest = 1 - sum q`. "bucket", the
    default, treats all other words as one event. It is a lower bound of the divergence of the
    complete distributions, and is 0 if the student equals the teacher. "renormalize" is smallest
    for a student that gives no probability to other words, so with few words it makes students
    overconfident.

    Only "renormalize" supports a `temperature` other than 1, because `p_rest` is not known at other
    temperatures. p' is then proportional to `p^(1 / temperature)`, q is the softmax of the
    student's logits divided by the temperature, and the loss is multiplied by `temperature^2`.

    Everything else, including precision, cost and memory, is as in
    `keras_drill.ops.linear_kl_divergence`, except that the teacher needs no matrix product.

    Shape letters: S stored words for each token, hidden states of width d, V words.

    Args:
        hidden: `[..., d]`, floats, hidden states of the student.
        labels: `[V, d]`, output embeddings of the student, a tensor or a variable.
        teacher_words: `[..., S]`, integers in `[0, V)`, in any order; the first axes are those of
            `hidden`.
        teacher_log_probs: `[..., S]`, log-probabilities of the words. -inf marks unused entries,
            whose words are ignored. If a word occurs twice, its probabilities are summed.
        bias: `[V]`, or `None`.
        rest: "bucket" or "renormalize", as above.
        temperature: Positive number, which divides the logits of student and teacher. Must be 1
            with "bucket".
        targets, cross_entropy_weight, sample_weight, ignore_index, reduction, logit_soft_cap,
            label_gradient, training, tile_size, tile_bytes: As in
            `keras_drill.ops.linear_kl_divergence`.

    Returns:
        A scalar, or `[...]` with `reduction="none"`; float32 (float64 if `hidden` is).

    Raises:
        ValueError: An argument is invalid, a word is out of range, or the probabilities of a token
            sum to more than 1, or to 0 with "renormalize". For compiled functions, see
            `keras_drill.ops.linear_cross_entropy`.

    Example:

    >>> hidden = keras.random.normal((2, 3, 5), seed=1)
    >>> labels = keras.random.normal((11, 5), seed=2)
    >>> log_p = keras.ops.log_softmax(keras.random.normal((2, 3, 11), seed=3))
    >>> log_probs, words = keras.ops.top_k(log_p, 4)
    >>> stored = keras_drill.ops.sparse_linear_kl_divergence(hidden, labels, words, log_probs)
    >>> log_q = keras.ops.log_softmax(hidden @ keras.ops.transpose(labels))
    >>> whole = keras.ops.sum(keras.ops.exp(log_p) * (log_p - log_q), axis=-1)
    >>> 0 < float(stored) < float(keras.ops.mean(whole))
    True
    """
    if rest not in ("bucket", "renormalize"):
        raise ValueError(f'`rest` must be "bucket" or "renormalize". Received: rest={rest!r}')
    check_temperature(temperature)
    if rest == "bucket" and temperature != 1:
        raise ValueError(
            '`temperature` must be 1 with `rest="bucket"`, because the remaining probability of '
            "the teacher is known at temperature 1 only. For another temperature, use "
            '`rest="renormalize"`. '
            f"Received: temperature={temperature!r}"
        )
    weight = 0.0 if targets is None else cross_entropy_weight
    check_cross_entropy_weight(weight)
    hidden = ops.convert_to_tensor(hidden)
    words, log_probs = _check_shapes(hidden, teacher_words, teacher_log_probs)
    num_words = ops.shape(labels)[0]
    dtype = "float64" if keras.backend.standardize_dtype(hidden.dtype) == "float64" else "float32"

    def teacher(weights):
        flat = [ops.reshape(x, (-1, x.shape[-1])) for x in (words, log_probs)]
        found, logs = (
            at_least_one_token(x, ops.zeros(ops.shape(x)[:1], "int32"), None, dtype)[0]
            for x in flat
        )
        logs = ops.stop_gradient(ops.cast(logs, dtype))
        valid = _check_entries(found, logs, num_words, weights, rest)
        if rest == "renormalize":
            logs = ops.log_softmax(logs / temperature)
        return StoredTeacher(ops.cast(found, "int32"), ops.exp(logs)), ops.all(valid)

    divergence = ForwardKLWithRest() if rest == "bucket" else ForwardKL()
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
        distillation=Distillation(divergence, temperature, weight),
    )


def _check_shapes(hidden, teacher_words, teacher_log_probs) -> tuple:
    """Checks the types and shapes of stored words, and returns both as tensors `[..., S]`."""
    words, log_probs = (ops.convert_to_tensor(x) for x in (teacher_words, teacher_log_probs))
    size = words.shape[-1] if words.shape else None
    if not size:
        raise ValueError(
            "`teacher_words` must be [..., S]: the first axes of `hidden`, then a static number S "
            "of at least 1, the words of each token. "
            f"Received: teacher_words of shape {tuple(words.shape)}"
        )
    for name, x, is_right in (
        ("teacher_words", words, keras.backend.is_int_dtype),
        ("teacher_log_probs", log_probs, keras.backend.is_float_dtype),
    ):
        if not is_right(keras.backend.standardize_dtype(x.dtype)):
            kind = "integers" if name == "teacher_words" else "floats"
            raise ValueError(f"`{name}` must hold {kind}. Received: dtype {x.dtype}")
    return (
        check_leading_axes("teacher_words", words, hidden, (size,)),
        check_leading_axes("teacher_log_probs", log_probs, hidden, (size,)),
    )


def _check_entries(words, log_probs, num_words: int, weights, rest: str):
    """Checks the entries of tokens that count. Returns booleans `[N]`, true for valid tokens."""
    is_used = ops.logical_not(ops.equal(log_probs, -float("inf")))
    in_range = ops.logical_and(words >= 0, words < num_words)
    in_range = ops.logical_or(in_range, ops.logical_not(is_used))
    total = ops.sum(ops.exp(log_probs), axis=-1)
    add_up = total <= 1 + _TOLERANCE
    if rest == "renormalize":
        add_up = ops.logical_and(add_up, total > 0)
    if weights is not None:
        is_ignored = ops.equal(weights, 0)
        in_range = ops.logical_or(in_range, is_ignored[:, None])
        add_up = ops.logical_or(add_up, is_ignored)
    check_entries(words, in_range, f"`teacher_words` must be word indices in [0, {num_words})")
    least = " and to more than 0" if rest == "renormalize" else ""
    check_entries(
        log_probs,
        add_up,
        "`teacher_log_probs` must be log-probabilities, as log_softmax gives them, whose "
        f"exponentials sum to at most 1{least} for each token",
    )
    return ops.logical_and(ops.all(in_range, axis=-1), add_up)
