from keras_drill.fused_loss.linear_loss import linear_loss
from keras_drill.types import Tensor


def linear_cross_entropy(
    hidden: Tensor,
    labels: Tensor,
    targets: Tensor,
    bias: Tensor | None = None,
    *,
    sample_weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
    logit_soft_cap: float | None = None,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    label_gradient: bool | None = None,
    training: bool = True,
    tile_size: int | None = None,
    tile_bytes: int | None = None,
) -> Tensor:
    """Computes the cross-entropy of a linear output layer, without storing all logits.

    The labels here are the output embeddings of the words, not the classes to predict (`targets`).
    Let `s = hidden . labels^T + bias` be the logits, capped to `c * tanh(s / c)` with a
    `logit_soft_cap` c. The loss of a token with the target y is

        lse(s) - (1 - e) s_y - e mean(s) + z lse(s)^2

    where lse is the logarithm of the sum of exponentials, mean is over the words, e is
    `label_smoothing` and z is `z_loss`. The loss is exact, with exact gradients for `hidden`,
    `labels`, `bias` and `sample_weight`. The function processes one group of tokens (a tile) at a
    time: it computes loss and gradients together, and drops the logits. The function runs eagerly,
    in `tf.function`, under XLA, and under `jax.jit`, on every device. `keras_drill.OutputLayer` is
    the corresponding layer.

    Shape letters: N tokens (the number of `targets`), hidden states of width d, V words.

    - *Precision*: matrix products are in the dtype of `hidden`. The softmax, the loss, and the sums
      of the gradients over tiles are in float32, or in float64 if `hidden` is. A gradient has the
      dtype of its tensor, for example float32 for float32 labels with bfloat16 hidden states.
    - *Cost*: three matrix products of the size `[N, d]` times `[d, V]`, as many as with a stored
      matrix of logits. The number is two if labels get no gradient, and one with `training=False`.
      `reduction="none"` computes the logits again for the gradients, with one more product.
    - *Memory*, beyond arguments and gradients: one tile of logits (`tile_bytes`), and on CPUs a few
      buffers of 32 MiB. If labels get no gradient and there is no bias, CPUs need only the buffers.

    Second derivatives are not supported.

    Args:
        hidden: `[..., d]`, floats.
        labels: `[V, d]`, a tensor or a variable: the output embeddings of V words.
            For a `Dense` layer, use `keras.ops.transpose(layer.kernel)`. A variable whose rows are
            split over devices (`keras_drill.distribute.layout_map`) stays split. If `labels` is a
            tensor, JAX chooses how to split it.
        targets: `[...]`, integers in `[0, V)`.
        bias: `[V]`, or `None`.
        sample_weight: Weights or a mask of the shape of `targets`, or of its first axes (for
            example one weight per sequence); `None` is 1. Tokens of weight 0 are skipped, and may
            have any target and hidden state, even NaN. The gradient for such a weight is 0.
        ignore_index: Tokens with this target have weight 0; `None` for no such target.
        reduction: "mean", the weighted mean `sum(weight * loss) / sum(weight)`, or 0 if all weights
            are 0; "sum"; or "none", `weight * loss` of every token.
        logit_soft_cap: Smooth bound c of the logits, or `None`.
        label_smoothing: Share e of a target's probability that is distributed over all V words, in
            [0, 1).
        z_loss: Coefficient z of the squared log-normaliser lse(s).
        label_gradient: Whether labels get a gradient (`True`) or are a constant (`False`). `None`
            is `True`, except for a variable that is not trainable.
        training: Whether gradients will be needed. With `False`, gradients are still correct, but
            cost more. `reduction="none"` ignores this argument.
        tile_size: Number of tokens of a tile. `None` derives it from `tile_bytes`.
        tile_bytes: Memory of a tile of logits, in bytes. `None` is 2 GiB on GPUs and TPUs. On CPUs
            the default is 144 MiB, or 3/8 of the size of the labels' gradient if this is more.

    Returns:
        A scalar, or `[...]` with `reduction="none"`; float32 (float64 if `hidden` is).

    Raises:
        ValueError: An argument is invalid, or a target is out of range. For a target out of range
            in a compiled function, TensorFlow raises `InvalidArgumentError` instead. XLA and JAX
            cannot raise errors in compiled functions, so the loss is NaN.

    Example:

    >>> hidden = keras.random.normal((2, 3, 5), seed=1)
    >>> labels = keras.random.normal((11, 5), seed=2)
    >>> targets = np.array([[4, 10, -100], [0, 3, 3]])
    >>> loss = keras_drill.ops.linear_cross_entropy(hidden, labels, targets, ignore_index=-100)
    >>> logits = keras.ops.matmul(hidden, keras.ops.transpose(labels))
    >>> log_probs = np.asarray(keras.ops.log_softmax(logits))
    >>> picked = [log_probs[0, 0, 4], log_probs[0, 1, 10], *log_probs[1, [0, 1, 2], [0, 3, 3]]]
    >>> bool(abs(float(loss) + np.mean(picked)) < 1e-5)
    True

    References:
        - [Wijmans et al., 2024](https://arxiv.org/abs/2411.09009)
    """
    if not 0 <= label_smoothing < 1:
        raise ValueError(
            f"`label_smoothing` must be in [0, 1). Received: label_smoothing={label_smoothing}"
        )
    if z_loss < 0:
        raise ValueError(f"`z_loss` must not be negative. Received: z_loss={z_loss!r}")
    return linear_loss(
        hidden,
        labels,
        targets,
        bias,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_gradient=label_gradient,
        training=training,
        tile_bytes=tile_bytes,
        logit_soft_cap=logit_soft_cap,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        tile_size=tile_size,
    )
