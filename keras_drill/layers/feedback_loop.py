"""The time loop of a recurrent stack that reads its own last output, and the loop's gradients.

Shape letters: T time steps, B sequences, H units, d features of the input, G entries of the gates.
All sequences are time-major. Arrays named `kept` are dropout masks, divided by the probability of
keeping an entry.
"""

from typing import NamedTuple

import keras
from keras import ops

from keras_drill.layers.time_loop import (
    matmul_rows,
    outer_rows,
    previous_steps,
    scan_steps,
    select,
)
from keras_drill.types import Tensor


class Arguments(NamedTuple):
    """The inputs of the loop that get gradients. Missing inputs are empty lists."""

    steps: list  # the feedback's `[T, B, ...]`
    shared: list  # the feedback's arrays of any shape
    state: list  # each layer's states `[B, H]` before the first step
    known: list  # the part of the first layer's input that is not fed back, `[T, B, d_known]`
    weights: list  # each layer's W, U, b


class Trace(NamedTuple):
    """Results of a step that the backward loop needs. For all steps, T is the first axis."""

    state: list  # each layer's states `[B, H]` after the step
    gates: list  # each layer's gates `[B, 4H]`
    x: Tensor  # the feedback, after dropout, `[B, d]`
    residuals: list  # the feedback's intermediate results `[B, ...]`


class StepGradient(NamedTuple):
    """Gradients that one step of the backward loop computes. For all steps, T is the first axis."""

    state: list  # for each layer's states before the step
    deltas: list  # for each layer's gates before their activations
    steps: list  # for the feedback's `steps`
    x: list  # for x; empty if `Arguments.shared` is empty


class FeedbackLoop:
    """One forward and one backward loop over time for all layers of a stack.

    The backward loop computes only the gradients that each step needs from the next step. The
    other gradients are computed after the loop, for all steps at once.

    Args:
        feedback: A `keras_drill.layers.output_feedback.OutputFeedback`.
        layers: Recurrent layers.
        kept: Dropout masks: of the first layer's whole input, then of each layer's output.
        mask: `None`, or `[T, B]`.
        num_known: Number of features that precede x in the first layer's input.
        dtype: Dtype of matrix products.
        state_dtype: Dtype of states and element-wise arithmetic.
    """

    def __init__(self, feedback, layers, kept, mask, num_known, dtype, state_dtype):
        self.feedback = feedback
        self.layers = layers
        self.kept_known, kept_x = kept[0][..., :num_known], kept[0][..., num_known:]
        self.kept_inputs = [kept_x, *kept[1:-1]]
        self.kept_output = kept[-1]
        self.masks = [] if mask is None else [ops.expand_dims(mask, -1)]  # [T, B, 1]
        self.num_known = num_known
        self.dtype = dtype
        self.state_dtype = state_dtype

    def run(self, *arguments):
        """Runs the forward loop, in the form that `ops.custom_gradient` expects.

        Args:
            *arguments: The fields of `Arguments`.

        Returns:
            A flat tuple of the states after every step, `[T, B, H]` each, and the function that
            computes the gradients.
        """
        arguments = Arguments(*arguments)
        trace = self.forward(arguments)

        def gradient(*upstream):  # TensorFlow passes arguments, JAX one tuple
            upstream = keras.tree.pack_sequence_as(trace.state, keras.tree.flatten(upstream))
            return tuple(self.backward(arguments, trace, upstream))

        return tuple(keras.tree.flatten(trace.state)), gradient

    def drop(self, x, kept):
        return ops.cast(x * ops.cast(kept, x.dtype), self.dtype)

    def input_kernels(self, weights):
        """Splits the first layer's kernel into the rows for `known` and those for x.

        Returns:
            The rows for `known`, and a list: the rows for x, then the other layers' kernels.
        """
        first, *others = [layer_weights[0] for layer_weights in weights]
        return first[: self.num_known], [first[self.num_known :], *others]

    def forward(self, arguments: Arguments) -> Trace:
        kernel_of_known, kernels = self.input_kernels(arguments.weights)

        def step(carry, inputs):
            trace = self.forward_step(carry.state, inputs, arguments, kernels)
            return trace, trace

        batch_size = ops.shape(arguments.state[0][0])[0]
        start = Trace(
            arguments.state,
            [ops.zeros((batch_size, 4 * s[0].shape[-1]), self.dtype) for s in arguments.state],
            ops.zeros((batch_size, self.feedback.size), self.dtype),
            self.feedback.residuals,
        )
        known_gates = [
            matmul_rows(self.drop(x, self.kept_known), kernel_of_known) for x in arguments.known
        ]
        inputs = (arguments.steps, self.feedback.fixed, known_gates, self.masks)
        return scan_steps(step, start, inputs)[1]

    def forward_step(self, state, inputs, arguments: Arguments, kernels) -> Trace:
        """Computes one time step: the feedback x, then the layers from the first to the last."""
        steps, fixed, known_gates, mask = inputs
        output = self.drop(state[-1][0], self.kept_output)
        x, residuals = self.feedback.value(output, steps, fixed, arguments.shared)
        new_states, all_gates, inputs = [], [], []
        for i, layer in enumerate(self.layers):
            inputs.append(self.drop(x, self.kept_inputs[i]))
            x_gates = ops.matmul(inputs[i], kernels[i])
            x_gates = x_gates if i or not known_gates else x_gates + known_gates[0]
            new, gates = layer.run_step(x_gates, *arguments.weights[i][1:], state[i])
            new_states.append(_choose(mask, new, state[i]))
            all_gates.append(ops.cast(gates, self.dtype))
            x = new_states[i][0]
        return Trace(new_states, all_gates, inputs[0], residuals)

    def backward(self, arguments: Arguments, trace: Trace, upstream) -> Arguments:
        """Computes the gradients for the arguments from those for the states after every step.

        After the backward loop, each gradient is one product over all T·B rows.
        """
        before = keras.tree.map_structure(previous_steps, arguments.state, trace.state)
        first, gradients = self.backward_loop(arguments, trace, before, upstream)
        d_shared = []
        if arguments.shared:
            d_shared = self.feedback.shared_gradient(
                gradients.x[0],
                self.drop(before[-1][0], self.kept_output),
                arguments.steps,
                self.feedback.fixed,
                arguments.shared,
                trace.residuals,
            )
        kernel_of_known, _ = self.input_kernels(arguments.weights)
        d_known = []
        for known in arguments.known:
            x_delta, _ = self.layers[0].gate_shares(gradients.deltas[0])
            d = ops.cast(matmul_rows(x_delta, ops.transpose(kernel_of_known)), self.state_dtype)
            d_known.append(ops.cast(d * self.kept_known, known.dtype))
        d_weights = [
            self.weights_gradient(i, delta, arguments.known, trace, before)
            for i, delta in enumerate(gradients.deltas)
        ]
        return Arguments(gradients.steps, d_shared, first.state, d_known, d_weights)

    def backward_loop(self, arguments, trace, before, upstream) -> tuple:
        """Runs the backward loop.

        Returns:
            `StepGradient` of the first time step, and of all steps.
        """
        _, kernels = self.input_kernels(arguments.weights)
        kernels = [ops.transpose(kernel) for kernel in kernels]
        recurrent_kernels = [ops.transpose(weights[1]) for weights in arguments.weights]

        def step(carry, inputs):
            gradient = self.backward_step(
                carry.state, inputs, arguments.shared, kernels, recurrent_kernels
            )
            return gradient, gradient

        start = StepGradient(
            keras.tree.map_structure(ops.zeros_like, arguments.state),
            [ops.zeros_like(gates[0]) for gates in trace.gates],
            [ops.zeros_like(rows[0]) for rows in arguments.steps],
            [ops.cast(ops.zeros_like(trace.x[0]), self.state_dtype)] if arguments.shared else [],
        )
        inputs = (upstream, trace, before, arguments.steps, self.feedback.fixed, self.masks)
        return scan_steps(step, start, inputs, reverse=True)

    def backward_step(self, d_next, inputs, shared, kernels, recurrent_kernels) -> StepGradient:
        """Computes the gradients of one step: the layers from last to first, then the feedback."""
        upstream, trace, old, steps, fixed, mask = inputs
        d_state = keras.tree.map_structure(ops.add, d_next, upstream)
        d_previous: list[list[Tensor]] = [[] for _ in self.layers]
        deltas: list[Tensor] = [None] * len(self.layers)
        for i, layer in reversed(list(enumerate(self.layers))):
            delta, direct = layer.step_gradient(
                ops.cast(trace.gates[i], self.state_dtype), trace.state[i], old[i], d_state[i]
            )
            deltas[i] = ops.cast(select(mask, delta, ops.zeros_like(delta)), self.dtype)
            x_delta, h_delta = layer.gate_shares(deltas[i])
            direct = _choose(mask, direct, d_state[i])
            through_gates = ops.matmul(h_delta, recurrent_kernels[i])
            direct[0] = direct[0] + ops.cast(through_gates, self.state_dtype)
            d_previous[i] = direct
            d_x = ops.cast(ops.matmul(x_delta, kernels[i]), self.state_dtype) * self.kept_inputs[i]
            if i:
                d_state[i - 1][0] = d_state[i - 1][0] + d_x
        output = self.drop(old[-1][0], self.kept_output)
        d_output, d_steps = self.feedback.gradient(
            d_x, output, steps, fixed, shared, trace.residuals
        )
        d_output = ops.cast(d_output, self.state_dtype) * self.kept_output
        d_previous[-1][0] = d_previous[-1][0] + d_output
        d_steps = [ops.cast(d, s.dtype) for d, s in zip(d_steps, steps, strict=True)]
        return StepGradient(d_previous, deltas, d_steps, [d_x] if shared else [])

    def weights_gradient(self, index, delta, known, trace, before) -> list:
        """Returns the gradients for a layer's W, U and b."""
        layer = self.layers[index]
        x_delta, h_delta = layer.gate_shares(delta)
        x = trace.x
        if index:
            x = self.drop(trace.state[index - 1][0], self.kept_inputs[index])
        d_kernel = outer_rows(x, x_delta)
        if known and not index:
            of_known = outer_rows(self.drop(known[0], self.kept_known), x_delta)
            d_kernel = ops.concatenate([of_known, d_kernel], axis=0)
        previous_h = ops.cast(before[index][0], self.dtype)
        return [d_kernel, outer_rows(previous_h, h_delta), layer.bias_gradient(x_delta, h_delta)]


def _choose(mask, if_true, if_false):
    return [select(mask, a, b) for a, b in zip(if_true, if_false, strict=True)]
