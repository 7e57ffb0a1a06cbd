"""Makes an optimizer see one gradient a row where a word was looked up more than once."""

import keras


def merge_repeated_rows(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Makes an optimizer sum the gradients of several lookups of a word before it uses them.

    On TensorFlow the gradient of an embedding that is not tied has a row for every lookup
    (`tf.IndexedSlices`). Keras 3 clips and squares these rows one by one. A clipped step then has
    the wrong length, and Adam divides by the wrong size: for three equal rows of a word, by 1/√3 of
    the gradient. The gradient that is clipped and squared here is that of the table. On JAX it
    always is, and the optimizer is left as it is.

    Models of this package do it in `compile`. The optimizer's class and its configuration stay the
    same; no gradient becomes as large as its table.

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
