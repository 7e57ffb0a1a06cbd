"""Examples of the senses of words in context, as a part of an exported model."""

import numpy as np
import tensorflow as tf


class SenseContexts(tf.Module):
    """Examples of words in a corpus for each of their senses, for `TextModel.sense_contexts`.

    Pass this object to `TextModel` or `export_saved_model` as `contexts`. A sense is one of several
    label vectors of a word, as in `keras_drill.KernelizedBayesianSoftmax`. Shape letters: B
    requested senses, K the largest number of examples of a sense.

    Args:
        examples: One list of examples for each sense, in the order of the ids of senses. An example
            is a tuple of the text before the word, the text after the word, and the probability of
            the sense. The example with the highest probability must be first.

    Example:

    >>> from keras_drill.export import SenseContexts
    >>> contexts = SenseContexts([[("the river", "was wide", 0.9)], []])
    >>> {name: value.numpy().tolist() for name, value in contexts([1, 0, 7]).items()}["before"]
    [[b''], [b'the river'], [b'']]
    """

    def __init__(self, examples: list[list[tuple[str, str, float]]]):
        super().__init__(name="sense_contexts")
        most = max((len(some) for some in examples), default=0)
        shape = (len(examples) + 1, max(most, 1))  # the last row is for ids that are not a sense
        before, after = np.full(shape, "", object), np.full(shape, "", object)
        probabilities = np.zeros(shape, "float32")
        for sense, some in enumerate(examples):
            for place, (left, right, probability) in enumerate(some):
                before[sense, place], after[sense, place] = left, right
                probabilities[sense, place] = probability
        self.num_senses = len(examples)
        self.num_words = sum(len(left.split()) + len(right.split()) for left, right in zip(
            before.ravel(), after.ravel(), strict=True))  # fmt: skip
        with tf.init_scope(), tf.device("CPU"):  # strings live on the CPU
            self._table = {
                "before": tf.constant(before, tf.string),
                "after": tf.constant(after, tf.string),
                "probabilities": tf.constant(probabilities),
            }

    def __call__(self, senses: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the examples of senses.

        Args:
            senses: Ids of senses, integers `[B]`. For integers that are not ids of senses, the
                result has no examples, only padding.

        Returns:
            Dictionary of `before` and `after`, string tensors `[B, K]` padded with `""`, and
            `probabilities`, a float32 tensor `[B, K]` padded with 0.
        """
        senses = tf.convert_to_tensor(senses, tf.int32)
        is_sense = (senses >= 0) & (senses < self.num_senses)
        rows = tf.where(is_sense, senses, self.num_senses)
        return {name: tf.gather(values, rows) for name, values in self._table.items()}
