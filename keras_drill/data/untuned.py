"""Datasets that TensorFlow does not tune."""

import tensorflow as tf


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset without the thread in which TensorFlow tunes it, which may hold up its end.

    An iterator that ends wakes that thread just before it marks it as cancelled. If the thread
    looks first, it sleeps on, after a long epoch for up to a minute, and Python waits for it. What
    is `AUTOTUNE` in the dataset keeps the value it begins with.

    Example:

    >>> untuned(tf.data.Dataset.range(3)).options().autotune.enabled
    False
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
