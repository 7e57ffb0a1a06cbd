"""Makes an optimizer see one gradient a row where a word was looked up more than once."""

import keras


def merge_repeated_rows(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Makes an optimizer add up what several lookups of a word say of its embedding, before all
    else.

    On TensorFlow the gradient of a table that is only looked up in, such as an input embedding
    that is not tied, has a row for every lookup (`tf.IndexedSlices`). Keras 3 clips and squares
    these rows one by one, so that a clipped step has another length than it should, and Adam
    divides by another size than the gradient's: for three lookups of a word that ask for the same
    step, by 1/√3 of it. The gradient that is clipped and squared here is that of the table. On JAX
    it always is, and the optimizer is left as it is.

    Models of this package do it in `compile`. The optimizer's class and its configuration stay
    what they are; no gradient becomes as large as its table.

    Args:
        optimizer: `keras.optimizers.Optimizer`, of a loop of one's own.

    Returns:
        The same optimizer.

    Example:

    >>> optimizer = keras_drill.optimizers.merge_repeated_rows(keras.optimizers.Adam())
    """
    if keras.backend.backend() != "tensorflow" or "_merges_repeated_rows" in vars(optimizer):
        return optimizer
    apply = optimizer.apply

    def apply_merged(grads, trainable_variables=None):
        return apply([_merged(grad) for grad in grads], trainable_variables)

    optimizer.apply = apply_merged
    optimizer._merges_repeated_rows = True
    return optimizer


def _merged(gradient):
    """`gradient`, with the sum of a row's gradients where it comes first, and zeros later."""
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices = gradient.indices
    lookups = tf.shape(indices)[0]  # not as many as there are different words: XLA wants one shape
    first = tf.math.unsorted_segment_min(tf.range(lookups), indices, gradient.dense_shape[0])
    sums = tf.math.unsorted_segment_sum(gradient.values, tf.gather(first, indices), lookups)
    return tf.IndexedSlices(sums, indices, gradient.dense_shape)
