"""Switches off TensorFlow's autotuning of datasets."""

import tensorflow as tf


def untuned(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the dataset without autotuning, whose thread may delay the end of an epoch.

    When an iterator ends, it wakes the thread just before it marks the thread as cancelled. If the
    thread checks the mark too early, it sleeps again, for up to a minute after a long epoch, and
    Python waits. Parameters that are `AUTOTUNE` keep their initial values.

    Example:

    >>> untuned(tf.data.Dataset.range(3)).options().autotune.enabled
    False
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
