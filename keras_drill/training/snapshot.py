"""All variables of a training as arrays, and back."""

from collections.abc import Mapping

import keras
import numpy as np

from keras_drill.training.run_error import RunError


def _variables(model: keras.Model) -> dict[str, keras.Variable]:
    groups = {
        "model": model.variables,  # recurrent state and random seeds included
        "optimizer": model.optimizer.variables,
        "metrics": [variable for metric in model.metrics for variable in metric.variables],
    }
    return {
        f"{group}/{number}": variable
        for group, variables in groups.items()
        for number, variable in enumerate(variables)
    }


def take_snapshot(model: keras.Model) -> dict[str, np.ndarray]:
    """Values of the model's, the optimizer's and the metrics' variables."""
    return {
        name: keras.ops.convert_to_numpy(variable) for name, variable in _variables(model).items()
    }


def restore_snapshot(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Assigns what `take_snapshot` gave for the same model."""
    variables = _variables(model)
    wrong = set(variables) ^ set(arrays)
    wrong |= {
        name
        for name in set(variables) & set(arrays)
        if tuple(variables[name].shape) != arrays[name].shape
    }
    if wrong:
        raise RunError(
            "the checkpoint is of another model; it differs in "
            f"{', '.join(sorted(wrong)[:3])} ({len(wrong)} variables)"
        )
    for name, variable in variables.items():
        variable.assign(arrays[name])
