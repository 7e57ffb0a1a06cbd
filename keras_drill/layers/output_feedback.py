"""A stack of recurrent layers whose input depends on the stack's own last output.

T time steps, B sequences, H units, d features of the input, G gates. Everything is time-major.
"""

import abc

import keras
from keras import ops

from keras_drill.layers.feedback_loop import FeedbackLoop
from keras_drill.types import Tensor


class OutputFeedback(abc.ABC):
    """An input of a recurrent stack that depends on the stack's last output, and its derivative.

        x_t = value(h_{t-1}, what is known of step t, what is shared by all steps)

    The senses of a word given the state that predicted it, attention that is fed back, or words
    that are drawn while training, for instance. `h` is the last layer's output after its dropout.

    Args:
        size: Width d of x.
        steps: Arrays `[T, B, ...]` of which each step sees its own row, with a derivative.
        fixed: The same, without a derivative.
        shared: Arrays that all steps see (weights, an encoded source); their derivative is made
            after the time loop, by one call for all steps.
        residuals: Zeros `[B, ...]`, in the shapes and types of what `value` keeps for the
            derivative.
    """

    def __init__(self, size: int, steps=(), fixed=(), shared=(), residuals=()):
        self.size = size
        self.steps = list(steps)
        self.fixed = list(fixed)
        self.shared = list(shared)
        self.residuals = list(residuals)

    @abc.abstractmethod
    def value(self, output, steps, fixed, shared) -> tuple[Tensor, list]:
        """The input of one step.

        Args:
            output: h `[B, H]` of the step before.
            steps: This step's rows `[B, ...]` of `steps`.
            fixed: The same of `fixed`.
            shared: As `shared`.

        Returns:
            x `[B, d]`, and a list of what `gradient` will want to know again.
        """

    @abc.abstractmethod
    def gradient(self, d_x, output, steps, fixed, shared, residuals) -> tuple[Tensor, list]:
        """From the derivative for x `[B, d]`, those for h `[B, H]` and for this step's `steps`."""

    def shared_gradient(self, d_x, outputs, steps, fixed, shared, residuals) -> list:
        """From the derivatives for x of all steps, `[T, B, d]`, those for `shared`.

        All arguments but `shared` have T as first axis here.
        """
        return []


def feedback_sequence(feedback, layers, weights, kept, mask, state, known=None):
    """Runs a stack of layers over an input that depends on the stack's last output.

        x_t = feedback.value(h_{t-1}, ...),    h_t, ... = layers([known_t, x_t], state)

    One loop over time for all layers, and a hand-written derivative: as in `lstm_sequence`, the
    backward loop only propagates the derivative δ_t for the gates, and the weights' gradients are
    one product each over all T·B rows afterwards. The product of what is known beforehand with its
    weights is one product before the loop.

    Args:
        feedback: An `OutputFeedback`.
        layers: `keras_drill.layers.LSTM`s or `GRU`s.
        weights: What `read_weights` gave for each layer.
        kept: Dropout masks: of the first layer's whole input `[B, d]`, then of each layer's output.
            No derivative.
        mask: `None`, or `[T, B]`; the state is carried through masked steps.
        state: The flat list of states `[B, H]` before the first step.
        known: `None`, or what the first layer reads before x, `[T, B, d_known]`.

    Returns:
        The flat list of states after every step, `[T, B, H]` each.
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
