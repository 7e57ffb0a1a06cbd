"""Feeds a decoder's previous attentional state back as a part of its next input."""

import keras
from keras import ops

from keras_drill.layers.output_feedback import OutputFeedback
from keras_drill.ops.pull_back import pull_back


class AttentionFeedback(OutputFeedback):
    """Input feeding: `x_t = a_{t-1}`, the previous attentional state of the decoder; x_0 = 0.

    The gradient of the decoder's state is computed at each step. The gradients of the source and
    the weights are computed after the loop, for all steps at once. For these
    gradients the attention is recomputed, so that no intermediate results are stored.

    Args:
        attentional_state: A built `AttentionalState`.
        source: Output of its `project`.
        num_steps: Number of steps T.
        batch_size: Number of sequences B.

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), section 3.3
    """

    def __init__(self, attentional_state, source, num_steps, batch_size):
        self.attentional_state = attentional_state
        self.mask = source.get("mask")  # there is no source without attention
        self.names = sorted(set(source) - {"mask"})
        self.variables = attentional_state.weights
        # Reshaping reads a variable into a tensor, which a custom gradient needs on TensorFlow.
        weights = [ops.reshape(variable, variable.shape) for variable in self.variables]
        before = ops.arange(num_steps, dtype="int32") - 1
        super().__init__(
            attentional_state.dense.units,
            fixed=[ops.tile(before[:, None], (1, batch_size))],  # [T, B]
            shared=[*[source[name] for name in self.names], *weights],
        )

    def value(self, output, steps, fixed, shared):
        return self._feed(output[None], fixed[0][None], *shared)[0], []

    def gradient(self, d_x, output, steps, fixed, shared, residuals):
        def feed(output):
            return self._feed(output[None], fixed[0][None], *shared)[0]

        return pull_back(feed, [output], ops.cast(d_x, output.dtype))[0], []

    def shared_gradient(self, d_x, outputs, steps, fixed, shared, residuals):
        def feed(*shared):
            return self._feed(outputs, fixed[0], *shared)

        return pull_back(feed, shared, ops.cast(d_x, outputs.dtype))

    def _feed(self, outputs, before, *shared):
        """Computes the decoder's inputs as a function that can be differentiated.

        Args:
            outputs: `[T, B, H]`, the decoder's states after the previous steps.
            before: `[T, B]`, the indices of the previous steps, -1 before the first one.
            *shared: The source's tensors, then the weights.

        Returns:
            x, `[T, B, d]`.
        """
        arrays, weights = shared[: len(self.names)], shared[len(self.names) :]
        source = {"mask": self.mask, **dict(zip(self.names, arrays, strict=True))}
        with keras.StatelessScope(list(zip(self.variables, weights, strict=True))):
            x = self.attentional_state(
                ops.transpose(outputs, (1, 0, 2)), source, positions=ops.transpose(before)
            )
        is_fed = ops.cast(before >= 0, x.dtype)[..., None]
        return ops.transpose(x, (1, 0, 2)) * is_fed
