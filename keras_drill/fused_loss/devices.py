"""Computes the fused loss on several devices, which share the labels, the tokens, or both.

For each token, the devices exchange the largest score, the sum of exponentials, and the target's
scores. The log-normaliser and the target's probability follow from these. Once per step, the
devices exchange gradients: those of the hidden states if the labels are split, and those of the
labels if the tokens are split.
"""

import functools

from keras import ops

from keras_drill.fused_loss.inputs import StoredTeacher, WalkInputs, WalkOptions, WordLabels
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.placement import Placement
from keras_drill.fused_loss.walk import Walk, walk


def distributed_walk(
    inputs: WalkInputs, options: WalkOptions, weights=None, with_gradients=False
) -> Walk:
    """Runs `walk` on all devices of the mesh in `options.placement`. Returns the same `Walk`."""
    placement = options.placement
    if placement is None:
        return walk(inputs, options, weights, with_gradients)
    import jax

    num_tokens = inputs.contexts.shape[0]
    inputs, weights = _fill_up(inputs, weights, placement)
    of_tokens = jax.sharding.PartitionSpec(placement.token_axis)
    of_labels = jax.sharding.PartitionSpec(placement.label_axis)
    _check_teacher(inputs, placement)
    gradients = (of_tokens, of_tokens, of_labels, of_labels)
    gradients += (of_labels,) * len(inputs.score_parameters)
    function = jax.shard_map(
        functools.partial(_walk_part, options, with_gradients, placement),
        mesh=placement.mesh,
        in_specs=(_specs(inputs, placement), of_tokens),
        out_specs=Walk(
            of_tokens, of_tokens, of_tokens, of_tokens, gradients if with_gradients else ()
        ),
        check_vma=False,  # its check rejects the sums of loops, which begin at zero on every device
    )
    result = function(inputs, weights)

    def of_all(x):
        return None if x is None else x[:num_tokens]

    return Walk(
        of_all(result.losses),
        of_all(result.log_probs),
        of_all(result.posteriors),
        of_all(result.ranks),
        (*map(of_all, result.gradients[:2]), *result.gradients[2:]),
    )


def _specs(inputs: WalkInputs | StoredTeacher, placement: Placement):
    """Returns the partition of the tensors over the devices."""
    import jax

    of_tokens = jax.sharding.PartitionSpec(placement.token_axis)
    if isinstance(inputs, StoredTeacher):
        return StoredTeacher(of_tokens, of_tokens)
    of_labels = jax.sharding.PartitionSpec(placement.label_axis)
    everywhere = jax.sharding.PartitionSpec()
    return WalkInputs(
        contexts=of_tokens,
        log_priors=of_tokens,
        labels=of_labels,
        bias=of_labels,
        score_parameters=of_labels,
        columns=of_tokens,
        column_mask=of_tokens,
        targets=of_tokens,
        word_labels=inputs.word_labels and WordLabels(everywhere, everywhere, of_labels),
        teacher=inputs.teacher and _specs(inputs.teacher, placement),
    )


def _check_teacher(inputs: WalkInputs, placement: Placement) -> None:
    """Raises `ValueError` for a teacher whose labels are not split as the student's are."""
    teacher = inputs.teacher
    if not isinstance(teacher, WalkInputs) or placement.label_axis is None:
        return
    rows, expected = teacher.labels.shape[0], inputs.labels.shape[0]
    if rows != expected or teacher.word_labels is not None:
        raise ValueError(
            "If devices share the vocabulary, `teacher` must have one label per word and as many "
            f"rows of labels as the student, {expected}. Use a teacher without several senses per "
            "word, and set `pad_labels_to` of both output layers to the same number. Received: a "
            f"teacher with {'one label' if teacher.word_labels is None else 'several labels'} per "
            f"word and {rows} rows of labels"
        )


def _walk_part(options, with_gradients, placement: Placement, inputs, weights) -> Walk:
    """Computes one device's part of the walk and sums the results over devices."""
    import jax

    size, axis = inputs.labels.shape[0], placement.label_axis
    token_axis = placement.token_axis if placement.num_token_shards > 1 else None
    first = 0 if axis is None else jax.lax.axis_index(axis) * size
    is_filled_up = size * placement.num_shards > placement.num_labels
    shard = LabelShard(placement.num_labels, size, first, axis, token_axis, is_filled_up)
    result = walk(inputs, options, weights, with_gradients, shard)
    if not with_gradients:
        return result
    of_contexts, of_log_priors, *of_labels = result.gradients
    if token_axis is not None:
        of_labels = [None if x is None else jax.lax.psum(x, token_axis) for x in of_labels]
    return result._replace(gradients=(shard.sum(of_contexts), of_log_priors, *of_labels))


def _fill_up(inputs: WalkInputs, weights, placement: Placement) -> tuple:
    """Pads with tokens of weight 0, so that all devices have equally many tokens."""
    num_tokens = inputs.contexts.shape[0]
    missing = -num_tokens % placement.num_token_shards
    if missing == 0:
        return inputs, weights
    if weights is None:
        weights = ops.ones((num_tokens,), "float32")

    return _add_tokens(inputs, missing), _pad(weights, missing)


def _add_tokens(inputs: WalkInputs | StoredTeacher | None, missing: int):
    if inputs is None:
        return None
    if isinstance(inputs, StoredTeacher):
        return StoredTeacher(*(_pad(x, missing) for x in inputs))
    return inputs._replace(
        contexts=_pad(inputs.contexts, missing),
        log_priors=_pad(inputs.log_priors, missing),
        columns=_pad(inputs.columns, missing),
        column_mask=_pad(inputs.column_mask, missing),
        targets=_pad(inputs.targets, missing),
        teacher=_add_tokens(inputs.teacher, missing),
    )


def _pad(x, missing: int):
    return None if x is None else ops.pad(x, [(0, missing)] + [(0, 0)] * (len(x.shape) - 1))
