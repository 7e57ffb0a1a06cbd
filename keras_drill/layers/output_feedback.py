"""A stack of recurrent layers whose input depends on the stack's own last output.

Shape letters: T time steps, B sequences, H units, d features of the input. All sequences are
time-major.
"""

import abc

import keras
from keras import ops

from keras_drill.layers.feedback_loop import FeedbackLoop
from keras_drill.types import Tensor


class OutputFeedback(abc.ABC):
    """Base class for an input of a recurrent stack that depends on the stack's last output.

        x_t = value(h_{t-1}, steps[t], fixed[t], shared)

    Here h is the last layer's output after its dropout. Examples of such inputs are:

    - the mean of a word's sense embeddings, given the state that predicted the word;
    - the previous attention output;
    - words that the model samples in training.

    A subclass also computes the gradients of `value`.

    Args:
        size: Width d of x.
        steps: Arrays `[T, B, ...]` that get gradients. Each step reads its own part `[B, ...]`.
        fixed: Arrays `[T, B, ...]` like `steps`, but without gradients.
        shared: Arrays that all steps read (weights, an encoded source). Their gradients are
            computed after the time loop, by one call for all steps.
        residuals: Zeros `[B, ...]` with the shapes and dtypes of the intermediate results that
            `value` returns for the gradients.
    """

    def __init__(self, size: int, steps=(), fixed=(), shared=(), residuals=()):
        self.size = size
        self.steps = list(steps)
        self.fixed = list(fixed)
        self.shared = list(shared)
        self.residuals = list(residuals)

    @abc.abstractmethod
    def value(self, output, steps, fixed, shared) -> tuple[Tensor, list]:
        """Computes the input of one step.

        Args:
            output: h of the previous step, `[B, H]`.
            steps, fixed: This step's parts `[B, ...]` of the constructor's `steps` and `fixed`.
            shared: The constructor's `shared`.

        Returns:
            x `[B, d]`, and a list of intermediate results for `gradient`, its `residuals`.
        """

    @abc.abstractmethod
    def gradient(self, d_x, output, steps, fixed, shared, residuals) -> tuple[Tensor, list]:
        """Computes the gradients of one step.

        Args:
            d_x: The gradient for x, `[B, d]`.
            output, steps, fixed, shared: As for `value`.
            residuals: The intermediate results that `value` returned.

        Returns:
            The gradient for `output`, `[B, H]`, and a list of the gradients for `steps`.
        """

    def shared_gradient(self, d_x, outputs, steps, fixed, shared, residuals) -> list:
        """Computes the gradients for `shared`, for all steps at once.

        The arguments are those of `gradient`. All except `shared` have T as the first axis.

        Returns:
            A list of gradients, one for each array in `shared`.
        """
        return []


def feedback_sequence(feedback, layers, weights, kept, mask, state, known=None):
    """Runs a stack of layers over an input that depends on the stack's last output.

        x_t = feedback.value(h_{t-1}, ...),    h_t, ... = layers([known_t, x_t], state)

    There is one loop over time for all layers, and the gradients are written by hand. As in
    `lstm_sequence`, the backward loop only propagates the gradients for the gates. The weights'
    gradients are computed after the loop, for all T·B rows at once. The product of `known` and its
    weights is computed before the loop, also for all rows.

    Args:
        feedback: An `OutputFeedback`.
        layers: `keras_drill.layers.LSTM`s or `GRU`s.
        weights: The output of each layer's `read_weights`.
        kept: Dropout masks: of the first layer's whole input `[B, d]`, then of each layer's output.
            They get no gradients.
        mask: `None`, or `[T, B]`. Masked steps do not change the state.
        state: A flat list of the states before the first step, `[B, H]` each.
        known: `[T, B, d_known]`, the part of the first layer's input that is not fed back, or
            `None`.

    Returns:
        A flat list of the states after every step, `[T, B, H]` each.
    """
    num_states = layers[0].num_states
    loop = FeedbackLoop(
        feedback,
        layers,
        kept,
        mask,
        num_known=0 if known is None else known.shape[-1],
        dtype=keras.backend.standardize_dtype(weights[0][0].dtype),
        state_dtype=keras.backend.standardize_dtype(state[0].dtype),
    )
    states = ops.custom_gradient(loop.run)(
        feedback.steps,
        feedback.shared,
        [list(state[i : i + num_states]) for i in range(0, len(state), num_states)],
        [] if known is None else [known],
        [list(arrays) for arrays in weights],
    )
    return keras.tree.flatten(states)
