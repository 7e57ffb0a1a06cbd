"""Sums an embedding's gradients over repeated lookups of a word before an optimizer uses them."""

import keras


def merge_repeated_rows(optimizer: keras.optimizers.Optimizer) -> keras.optimizers.Optimizer:
    """Makes an optimizer clip and square embedding gradients correctly if words repeat in a batch.

    On TensorFlow, the gradient of an embedding that no output layer shares has one row for every
    lookup of a word (`tf.IndexedSlices`). Keras 3 clips and squares these rows one by one, before
    it sums the rows of a word. Clipped gradients then have the wrong norm, and Adam's steps have
    the wrong size: the step of a word with three equal rows is √3 times too long. This function
    makes the optimizer sum the rows of each word first. On JAX, gradients of embeddings are dense,
    and the function does not change the optimizer.

    Models of this package call this function in `compile`, so you need it only in your own training
    loop. The optimizer's class and its config stay the same. Gradients stay sparse: none becomes as
    large as the embedding matrix.

    Args:
        optimizer: The `keras.optimizers.Optimizer` to change, in place.

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
    """Returns a gradient whose row for the first lookup of a word has the sum; later rows are 0."""
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices = gradient.indices
    lookups = tf.shape(indices)[0]  # not the number of different words: XLA needs a fixed shape
    first = tf.math.unsorted_segment_min(tf.range(lookups), indices, gradient.dense_shape[0])
    sums = tf.math.unsorted_segment_sum(gradient.values, tf.gather(first, indices), lookups)
    return tf.IndexedSlices(sums, indices, gradient.dense_shape)
