"""Base class of the recurrent layers: everything that does not depend on the cell."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_drill.layers.cudnn import has_cudnn
from keras_drill.ops.check_sizes import check_sizes
from keras_drill.ops.fast_dropout import fast_dropout
from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.types import Initializer, Regularizer, Shape, Tensor, Tensors


class RecurrentWeights(NamedTuple):
    """The kernel W, recurrent kernel U and bias b of a recurrent layer, as tensors."""

    kernel: Tensor
    recurrent_kernel: Tensor
    bias: Tensor


def check_batch_size(x: Tensor, state: Tensors) -> Tensor:
    """Checks that the batch size of `x` `[T, B, ...]` is that of the carried state; returns `x`."""
    rows = state[0].shape[0]
    return check_sizes(
        x,
        (None, rows, *[None] * (len(x.shape) - 2)),
        f"Every batch must have {rows} rows, because `stateful=True` carries the state of {rows} "
        "rows from batch to batch. For other batch sizes use "
        "`keras_drill.models.make_stateless(model)`.",
    )


class Recurrent(keras.layers.Layer):
    """Base class of recurrent layers: weights, state and masks. Subclasses define the recurrence.

    A subclass sets `num_gates` and `num_states`. The subclass implements `bias_shape`, and
    `run_sequence` for time-major tensors. For loops over a whole stack of layers, the subclass also
    implements `run_step`, `step_gradient`, `gate_shares` and `bias_gradient`. The constructor
    arguments are those of `keras_drill.layers.LSTM`, except `unit_forget_bias`.
    """

    num_gates: int
    num_states: int

    def __init__(
        self,
        units: int,
        return_sequences: bool = False,
        return_state: bool = False,
        stateful: bool = False,
        time_major: bool = False,
        weight_dropout: float = 0.0,
        kernel_initializer: Initializer = "glorot_uniform",
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        recurrent_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        seed: int | None = None,
        **kwargs: Any,
    ):
        # The state keeps its float32 under mixed precision, so inputs are cast by hand.
        super().__init__(autocast=False, **kwargs)
        if units <= 0:
            raise ValueError(f"`units` must be positive. Received: units={units}")
        if not 0 <= weight_dropout < 1:
            raise ValueError(
                f"`weight_dropout` must be in [0, 1). Received: weight_dropout={weight_dropout}"
            )
        self.units = units
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.stateful = stateful
        self.time_major = time_major
        self.weight_dropout = weight_dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.seed = seed
        self.seed_generator = SeedGenerator(seed)
        self.supports_masking = True
        self.uses_cudnn = has_cudnn()
        self.supports_jit = not self.uses_cudnn
        self.state_variables: list[keras.Variable] = []

    def bias_shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def run_sequence(
        self,
        x: Tensor,
        weights: RecurrentWeights,
        state: Tensors,
        mask: Tensor | None,
        training: bool,
    ) -> tuple[Tensor, Tensors]:
        """Runs the layer over a sequence.

        Args:
            x: `[T, B, d]`.
            weights: Output of `read_weights`.
            state: The states before the first step, `[B, H]` each.
            mask: `None`, or `[T, B]`.
            training: Whether the layer is called for training.

        Returns:
            Outputs `[T, B, H]`, and the states after the last step.
        """
        raise NotImplementedError

    # One time step and its gradients, for loops over a whole stack of layers.

    def run_step(
        self, x_gates: Tensor, recurrent_kernel: Tensor, bias: Tensor, state: Tensors
    ) -> tuple[list[Tensor], Tensor]:
        """Computes one time step.

        Args:
            x_gates: `x W`, `[B, G]`.
            recurrent_kernel, bias: U and b.
            state: The states before the step, `[B, H]` each.

        Returns:
            The states after the step, of which the first is the output; and the gates, for
            `step_gradient`.
        """
        raise NotImplementedError

    def step_gradient(
        self, gates: Tensor, state: Tensors, previous_state: Tensors, d_state: Tensors
    ) -> tuple[Tensor, list[Tensor]]:
        """Computes the gradients of one time step.

        Args:
            gates: The gates that `run_step` returned.
            state, previous_state: The states after and before the step.
            d_state: The gradients for `state`.

        Returns:
            The gradient for the gates before their activations; and a gradient for each previous
            state, without the part that passes through the product with U.
        """
        raise NotImplementedError

    def gate_shares(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        """Splits the first result of `step_gradient` into the gradients for `x W` and `h U`."""
        raise NotImplementedError

    def bias_gradient(self, x_delta: Tensor, h_delta: Tensor) -> Tensor:
        """Computes the gradient for b from the results of `gate_shares` for all steps."""
        raise NotImplementedError

    def read_weights(self, training: bool) -> RecurrentWeights:
        """Returns the weights in the compute dtype; in training, with dropout on U."""
        # Reshaping reads a variable into a tensor, which a custom gradient needs on TensorFlow.
        kernel, recurrent_kernel, bias = (
            ops.cast(ops.reshape(weight, weight.shape), self.compute_dtype)
            for weight in (self.kernel, self.recurrent_kernel, self.bias)
        )
        if training:
            recurrent_kernel = fast_dropout(
                recurrent_kernel, self.weight_dropout, self.seed_generator
            )
        return RecurrentWeights(kernel, recurrent_kernel, bias)

    @property
    def state_dtype(self) -> str:
        """Dtype of the state and of element-wise arithmetic: at least float32."""
        # `result_type` is not suitable: on JAX it returns float32 for float64.
        return "float64" if self.compute_dtype == "float64" else "float32"

    def build(self, input_shape: Shape) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.num_gates * self.units),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.units, self.num_gates * self.units),
            initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
        )
        self.bias = self.add_weight(
            name="bias",
            shape=self.bias_shape(),
            initializer=self.initialize_bias,
            regularizer=self.bias_regularizer,
        )
        if self.stateful:
            batch_size = input_shape[1 if self.time_major else 0]
            if batch_size is None:
                raise ValueError(
                    "`stateful=True` needs a static batch size. Give the batch size in the input's "
                    "shape, for example by keras.Input(batch_shape=...). "
                    f"Received: input_shape={tuple(input_shape)}"
                )
            self.state_variables = [
                self.add_weight(
                    name=f"state_{i}",
                    shape=(batch_size, self.units),
                    dtype=self.state_dtype,
                    initializer="zeros",
                    trainable=False,
                )
                for i in range(self.num_states)
            ]

    def initialize_bias(self, shape: Shape, dtype: str | None = None) -> Tensor:
        return self.bias_initializer(shape, dtype=dtype)

    def initial_state(self, batch_size: int) -> list[Tensor]:
        """Returns a list of `num_states` tensors of zeros, `[batch_size, units]` each."""
        return [
            ops.zeros((batch_size, self.units), self.state_dtype) for _ in range(self.num_states)
        ]

    def reset_state(self) -> None:
        """Sets the carried state of a stateful layer to zero."""
        for variable in self.state_variables:
            variable.assign(ops.zeros(variable.shape, variable.dtype))

    def carry_state(self, state: Tensors) -> None:
        """Sets the carried state of a stateful layer."""
        for variable, value in zip(self.state_variables, state, strict=True):
            variable.assign(value)

    def call(
        self,
        inputs: Tensor,
        initial_state: Tensors | None = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor | tuple[Tensor, ...]:
        x = ops.cast(inputs, self.compute_dtype)
        if not self.time_major:
            x = ops.transpose(x, (1, 0, 2))  # [T, B, d]
            mask = None if mask is None else ops.transpose(mask)  # [T, B]
        carries_state = self.stateful and initial_state is None
        if carries_state:
            x = check_batch_size(x, self.state_variables)
            initial_state = self.state_variables
        elif initial_state is None:
            initial_state = self.initial_state(ops.shape(x)[1])
        state: Tensors = [
            ops.cast(ops.reshape(s, (-1, self.units)), self.state_dtype) for s in initial_state
        ]
        weights = self.read_weights(training)
        outputs, state = self.run_sequence(x, weights, state, mask, training)
        if carries_state:
            self.carry_state(state)
        if not self.return_sequences:
            outputs = state[0]  # [B, H]
        elif not self.time_major:
            outputs = ops.transpose(outputs, (1, 0, 2))  # [B, T, H]
        outputs = ops.cast(outputs, self.compute_dtype)
        return (outputs, *state) if self.return_state else outputs

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None, **kwargs: Any) -> Any:
        output_mask = mask if self.return_sequences else None
        return (output_mask, *[None] * self.num_states) if self.return_state else output_mask

    def compute_output_shape(
        self, input_shape: Shape, initial_state_shape: Shape | None = None
    ) -> Shape | tuple[Shape, ...]:
        state_shape: Shape = (input_shape[1 if self.time_major else 0], self.units)
        output_shape = (*input_shape[:2], self.units) if self.return_sequences else state_shape
        return (
            (output_shape, *[state_shape] * self.num_states) if self.return_state else output_shape
        )

    def compute_output_spec(
        self,
        inputs: Tensor,
        initial_state: Tensors | None = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> keras.KerasTensor | tuple[keras.KerasTensor, ...]:
        shapes = self.compute_output_shape(inputs.shape)
        if not self.return_state:
            return keras.KerasTensor(shapes, self.compute_dtype)
        return (
            keras.KerasTensor(shapes[0], self.compute_dtype),
            *[keras.KerasTensor(shape, self.state_dtype) for shape in shapes[1:]],
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "return_sequences": self.return_sequences,
            "return_state": self.return_state,
            "stateful": self.stateful,
            "time_major": self.time_major,
            "weight_dropout": self.weight_dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
            "recurrent_regularizer": keras.regularizers.serialize(self.recurrent_regularizer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "seed": self.seed,
        }
