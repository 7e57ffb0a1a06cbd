from typing import Any

import keras
from keras import ops

from keras_drill.ops.fast_dropout import fast_dropout
from keras_drill.ops.scaled_steps import (
    check_learning_rate_multiplier,
    scaled_steps,
    stored_initializer,
)
from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.types import Activation, Initializer, Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class ResidualNetwork(keras.layers.Layer):
    """The network with which `keras_drill.DrillOutput` computes labels from word embeddings.

    With the input X, one row for each word, and i = 1, ..., depth,

        X_i = [g_i *] act(dropout(X_{i-1}) U_i + u_i) + [X_{i-1}] + [X],    X_0 = X.

    U_i, u_i and g_i are the kernels, biases and gates of the layers, and act is the activation. The
    parts in brackets are optional: g_i is for `gated=True`, X_{i-1} for `residual_to_previous=True`
    and i > 1, and X for `residual_to_input=True`. The gates are 0 at first. With
    `residual_to_input=True`, a gated network therefore begins as the identity, or, with
    `residual_to_previous=True` too, as `depth` times the input.

    Input shape: `[..., d]`, embeddings of width d. Output shape: `[..., units]`.

    Args:
        depth: Number of layers.
        units: Width of every layer; `None` is the input's width. With `residual_to_input=True`, it
            must be the input's width.
        activation: Any Keras activation. The paper uses sigmoid, tanh and relu.
        dropout: Dropout rate on the input of every layer, as in the authors' code. (The paper
            applies dropout to the output.)
        variational_dropout: Whether to draw one dropout mask for all rows (words), instead of
            dropping each entry independently.
        residual_to_input: Whether to add the input to every layer's output.
        residual_to_previous: Whether to add the previous layer's output to the output of every
            layer after the first.
        gated: Whether to multiply every layer's activation by a gate `[units]`, which starts at 0.
        kernel_initializer: Initializer of the `U_i`.
        seed: Seed of the dropout masks.
        learning_rate_multiplier: Multiplies every step of the optimizer on this network's weights.
            The variables hold the weights divided by this number. A step of these weights changes
            the labels of all words at once. Adam, whose steps do not shrink with the gradient, may
            therefore need a multiplier such as 0.1.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Raises:
        ValueError: An argument is out of range, or `residual_to_input=True` would add different
            widths.

    Example:

    >>> network = keras_drill.label_encoders.ResidualNetwork(depth=2)
    >>> network(keras.ops.ones((11, 3))).shape
    TensorShape([11, 3])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513), equations 8-10
    """

    def __init__(
        self,
        depth: int = 1,
        units: int | None = None,
        activation: Activation = "relu",
        dropout: float = 0.0,
        variational_dropout: bool = False,
        residual_to_input: bool = True,
        residual_to_previous: bool = False,
        gated: bool = False,
        kernel_initializer: Initializer = "glorot_uniform",
        seed: int | None = None,
        learning_rate_multiplier: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if not isinstance(depth, int) or depth < 1:
            raise ValueError(f"`depth` must be a positive integer. Received: depth={depth!r}")
        if units is not None and units < 1:
            raise ValueError(f"`units` must be a positive integer or None. Received: units={units}")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1). Received: dropout={dropout}")
        check_learning_rate_multiplier(learning_rate_multiplier)
        self.depth = depth
        self.units = units
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.variational_dropout = variational_dropout
        self.residual_to_input = residual_to_input
        self.residual_to_previous = residual_to_previous
        self.gated = gated
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.learning_rate_multiplier = learning_rate_multiplier
        self.seed_generator = SeedGenerator(seed)

    def build(self, input_shape: Shape) -> None:
        width, units = input_shape[-1], self.units or input_shape[-1]
        if self.residual_to_input and units != width:
            raise ValueError(
                "`units` must be the width of the input, which `residual_to_input=True` adds to "
                f"every layer. Received: units={units} for an input of width {width}"
            )
        initializer = stored_initializer(self.kernel_initializer, self.learning_rate_multiplier)
        self.kernels, self.biases, self.gates = [], [], []
        for i in range(self.depth):
            self.kernels.append(
                self.add_weight(
                    shape=(width if i == 0 else units, units),
                    initializer=initializer,
                    name=f"kernel_{i}",
                )
            )
            self.biases.append(
                self.add_weight(shape=(units,), initializer="zeros", name=f"bias_{i}")
            )
            if self.gated:
                self.gates.append(
                    self.add_weight(shape=(units,), initializer="zeros", name=f"gate_{i}")
                )
        self.built = True

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        outputs = inputs
        for i, stored in enumerate(zip(self.kernels, self.biases, strict=True)):
            previous = outputs
            kernel, bias = (
                scaled_steps(ops.convert_to_tensor(weight), self.learning_rate_multiplier)
                for weight in stored
            )
            outputs = self.activation(ops.matmul(*self._drop(previous, kernel, training)) + bias)
            if self.gated:
                gate = ops.convert_to_tensor(self.gates[i])
                outputs = scaled_steps(gate, self.learning_rate_multiplier) * outputs
            if self.residual_to_previous and i > 0:
                outputs = outputs + previous
            if self.residual_to_input:
                outputs = outputs + inputs
        return outputs

    def _drop(self, inputs, kernel, training):
        """Returns the operands of the matrix product, with dropout on the inputs."""
        if not training or not self.dropout:
            return inputs, kernel
        if not self.variational_dropout:
            return fast_dropout(inputs, self.dropout, self.seed_generator), kernel
        # One mask for all rows: X diag(m) U. Scaling the kernel's rows costs almost nothing.
        mask = keras.random.dropout(
            ops.ones((kernel.shape[0], 1), self.compute_dtype),
            self.dropout,
            seed=self.seed_generator,
        )
        return inputs, mask * kernel

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units or input_shape[-1])

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "depth": self.depth,
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "variational_dropout": self.variational_dropout,
            "residual_to_input": self.residual_to_input,
            "residual_to_previous": self.residual_to_previous,
            "gated": self.gated,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
            "learning_rate_multiplier": self.learning_rate_multiplier,
        }
