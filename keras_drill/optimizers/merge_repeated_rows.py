"""Sums an embedding's gradients of repeated lookups of a word before an optimizer uses them."""

import keras


def merge_repeated_rows(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Makes an optimizer sum the gradients of several lookups of a word before it uses them.

    On TensorFlow the gradient of an embedding that is not tied has a row for every lookup
    (`tf.IndexedSlices`). Keras 3 clips and squares these rows one by one. A clipped step then has
    the wrong length, and Adam divides by the wrong size: for three equal rows of a word, by 1/√3 of
    the gradient. With this function, Keras clips and squares the embedding matrix's gradient. On
    JAX this is always so, and the function does not change the optimizer.

    Models of this package call this function in `compile`. The optimizer's class and its config
    stay the same. Gradients stay sparse: none becomes as large as the embedding matrix.

    Args:
        optimizer: `keras.optimizers.Optimizer` of your own training loop, which is changed in
            place.

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
    """Returns a gradient in which the first lookup of a word has the sum, later ones zeros."""
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices = gradient.indices
    lookups = tf.shape(indices)[0]  # not the number of different words: XLA needs a fixed shape
    first = tf.math.unsorted_segment_min(tf.range(lookups), indices, gradient.dense_shape[0])
    sums = tf.math.unsorted_segment_sum(gradient.values, tf.gather(first, indices), lookups)
    return tf.IndexedSlices(sums, indices, gradient.dense_shape)
