"""Resets an optimizer's slots for some rows of a variable."""

import keras
import numpy as np
from keras import ops

from keras_drill.ops.private_interfaces import (
    AVERAGES_OF_WEIGHTS,
    single_optimizers,
    slot_lists,
    trained_variables,
)
from keras_drill.ops.variables import on_one_device, variable_like
from keras_drill.types import Tensor

_ROWS, _WIDTH = 5, 3  # of the small variable; different, so that rows differ from columns


def reset_optimizer_rows(
    optimizer: keras.optimizers.Optimizer, variable: Tensor, rows: Tensor
) -> None:
    """Resets an optimizer's slots (momentum, velocity, ...) for some rows of a variable.

    Use this function after you replace rows of a variable, for example embeddings, during training.
    The function works on any Keras optimizer, including the optimizers inside a
    `LossScaleOptimizer` or `MultiOptimizer`. Slots with an entry per row get the values that they
    have in a new optimizer of the same config. State that all rows share is not reset, such as the
    column sums of a factored Adafactor and the number of iterations. Moving averages of the weights
    (`use_ema`) are set to the current weights. An optimizer that has no slots yet, or does not
    train the variable, is not changed.

    Args:
        optimizer: The `keras.optimizers.Optimizer` that trains the variable.
        variable: The `keras.Variable`, `[M, ...]`, with M rows.
        rows: `[M]` booleans, true for the rows to reset.

    Example:

    >>> optimizer = keras.optimizers.Adagrad(initial_accumulator_value=0.1)
    >>> variable = keras.Variable([[1.0], [1.0]])
    >>> optimizer.apply([keras.ops.ones((2, 1))], [variable])
    >>> rows = np.array([False, True])
    >>> keras_drill.optimizers.reset_optimizer_rows(optimizer, variable, rows)
    >>> print(keras.ops.convert_to_numpy(optimizer.variables[-1]))
    [[1.1]
     [0.1]]
    """
    for single in single_optimizers(optimizer):
        _reset_rows(single, variable, rows)


def _reset_rows(optimizer, variable, rows):
    trained = trained_variables(optimizer)
    index = next((i for i, other in enumerate(trained) if other is variable), None)
    if index is None:
        return
    with on_one_device():
        small = _small_like(variable)
        initial_slots = _slots(_new_like(optimizer, small), 0)
    for name, slot in _slots(optimizer, index).items():
        initial = np.asarray(ops.convert_to_numpy(initial_slots[name]))
        if not initial.ndim or len(initial) != _ROWS:
            continue
        follows = np.array_equal(initial, np.asarray(ops.convert_to_numpy(small)))
        # Keras starts the average at zero, and sets it to the weights in iteration 1 only.
        if follows or name == AVERAGES_OF_WEIGHTS:
            value = ops.cast(variable, slot.dtype)
        else:
            value = ops.cast(initial.flat[0], slot.dtype)
        mask = ops.reshape(ops.convert_to_tensor(rows), (-1,) + (1,) * (len(slot.shape) - 1))
        slot.assign(ops.where(mask, value, ops.convert_to_tensor(slot)))


def _slots(optimizer, index: int) -> dict[str, keras.Variable]:
    """Returns a dictionary from attribute names to the slots of the variable at `index`."""
    return {
        name: slots[index]
        for name, slots in slot_lists(optimizer).items()
        if isinstance(slots[index], keras.Variable)
    }


def _small_like(variable) -> keras.Variable:
    """Returns a variable with few rows and the same path, since some optimizers read the path."""
    shape = (_ROWS, *[_WIDTH] * (len(variable.shape) - 1))
    values = np.random.default_rng(0).normal(size=shape)
    return variable_like(variable, values, dtype=variable.dtype)


def _new_like(optimizer, variable):
    """Returns a new optimizer with the same config and slots for `variable`."""
    # Slots do not depend on the learning rate, and Keras may not know the class of a schedule.
    config = {**optimizer.get_config(), "learning_rate": 0.1}
    new = type(optimizer).from_config(config)
    new.build([variable])
    return new
