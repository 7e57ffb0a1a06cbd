"""Converts all variables of a training to the arrays of a checkpoint, and back."""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping

import keras
import numpy as np

from keras_drill.layers.carried_state import carried_state
from keras_drill.ops.private_interfaces import slot_lists, trained_variables
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.workers import Workers

AVERAGING = "averaging/"  # prefix of the arrays of `NonMonotonicAveraging`

_NUMBERED = re.compile(r"(model|optimizer|metrics)/\d+")
_REPLICA = "@"  # followed by the number of the replica, for variables in which replicas differ


def take_snapshot(model: keras.Model, workers: Workers) -> dict[str, np.ndarray]:
    """Returns the values of the variables of model, optimizer and metrics, by path.

    The values are those of a training on one device, so the training may resume on any number of
    devices. Recurrent states contain the rows of all replicas, and metrics are summed over
    replicas. The terms of these sums are stored too, so that a training with the same number of
    replicas resumes with the same rounding.

    All workers must call this function together.
    """
    variables = _variables(model)
    kinds = _kinds(model, variables)
    arrays = {
        key: keras.ops.convert_to_numpy(replicas(variable)[0])
        for key, variable in variables.items()
    }
    if workers.num_replicas == 1 or not kinds:
        return arrays
    shared = _from_all_replicas({key: variables[key] for key in kinds}, workers)
    for key, values in shared.items():
        if kinds[key] == "rows":
            arrays[key] = np.concatenate(values)
        else:
            arrays[key] = sum(values[1:], start=values[0])
            arrays.update(
                {f"{key}{_REPLICA}{number}": value for number, value in enumerate(values)}
            )
    return arrays


def restore_snapshot(
    model: keras.Model, arrays: Mapping[str, np.ndarray], workers: Workers
) -> None:
    """Assigns a result of `take_snapshot` to the same model, on any number of replicas.

    In snapshots of old versions, variables have numbers. They are assigned in order.

    Raises:
        RunError: The snapshot is of another model.
    """
    variables = _variables(model)
    kinds = _kinds(model, variables)
    if arrays and all(map(_NUMBERED.fullmatch, arrays)):
        arrays = _by_path(variables, arrays)
    arrays, terms = _without_terms(arrays)
    rows = {key for key, kind in kinds.items() if kind == "rows"}
    _check(variables, arrays, dict.fromkeys(rows, workers.num_replicas))
    for key, variable in variables.items():
        for number, replica in enumerate(replicas(variable), start=workers.first_replica):
            value = arrays[key]
            if key in rows:
                value = np.split(value, workers.num_replicas)[number]
            elif key in kinds and workers.num_replicas > 1:
                parts = terms.get(key, [])
                if len(parts) == workers.num_replicas:
                    value = parts[number]
                elif number > 0:
                    value = np.zeros_like(value)
            replica.assign(value)


def restore_weights(model: keras.Model, arrays: Mapping[str, np.ndarray]) -> None:
    """Assigns a snapshot to the variables of the model only, without optimizer and metrics."""
    variables = _keyed("model", model_keys(model))
    mine = {name: array for name, array in arrays.items() if name.startswith("model/")}
    if mine and all(map(_NUMBERED.fullmatch, mine)):
        mine = _by_path(variables, mine)
    mine, _ = _without_terms(mine)
    _check(variables, mine, {})
    for key, variable in variables.items():
        variable.assign(mine[key])


def callback_state(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Selects the arrays whose names begin with a prefix, and removes the prefix.

    Example:

    >>> callback_state("averaging/", {"averaging/losses": np.zeros(2), "model/bias": np.zeros(3)})
    {'losses': array([0., 0.])}
    """
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def model_keys(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns the variables of a model by paths that are the same in every process.

    The variables include recurrent states and random seeds. Keras names layers by the number of
    layers that the process created before, such as `awdlstm_3`. Here the numbers count from 0
    among siblings, and the name of the model is dropped. Backbone and head are always named
    `backbone` and `head`.
    """
    roles = {
        getattr(model, role).name: role for role in ("backbone", "head") if hasattr(model, role)
    }

    def named(path: str) -> str:
        root, *parts = path.split("/")
        if root != model.name or len(parts) < 2:
            return path
        return "/".join([roles.get(parts[0], parts[0]), *parts[1:]])

    variables = model.variables
    names = stable_names([named(variable.path) for variable in variables])
    return dict(zip(names, variables, strict=True))


def stable_names(paths: Iterable[str]) -> list[str]:
    """Renumbers the parts of paths, so that numbers count from 0 among siblings.

    Example:

    >>> stable_names(["a_3/dense_7/kernel", "a_3/dense_12/kernel", "a_3/bias", "a_3/bias"])
    ['a/dense/kernel', 'a/dense.1/kernel', 'a/bias', 'a/bias#1']
    """
    split = [tuple(path.split("/")) for path in paths]
    siblings: dict[tuple[str, ...], set[tuple[int, str]]] = defaultdict(set)
    for path in split:
        for depth, part in enumerate(path):
            base, number = _split(part)
            siblings[(*path[:depth], base)].add((number, part))
    places = {
        (*key[:-1], part): f"{key[-1]}.{place}" if place else key[-1]
        for key, parts in siblings.items()
        for place, (_, part) in enumerate(sorted(parts))
    }
    seen: dict[str, int] = defaultdict(int)
    names = []
    for path in split:
        name = "/".join(places[path[: depth + 1]] for depth in range(len(path)))
        seen[name] += 1
        names.append(f"{name}#{seen[name] - 1}" if seen[name] > 1 else name)
    return names


def _split(part: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.+?)_(\d+)", part)
    return (match[1], int(match[2])) if match else (part, -1)


def _variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns all variables of a training by key, in the order of the numbers in old versions."""
    weights = model_keys(model)
    metrics = [variable for metric in model.metrics for variable in metric.variables]
    paths = stable_names(variable.path for variable in metrics)
    return {
        **_keyed("model", weights),
        **_keyed("optimizer", _optimizer_keys(model.optimizer, weights)),
        **_keyed("metrics", dict(zip(paths, metrics, strict=True))),
    }


def _keyed(group: str, variables: Mapping[str, keras.Variable]) -> dict[str, keras.Variable]:
    return {f"{group}/{name}": variable for name, variable in variables.items()}


def _optimizer_keys(
    optimizer: keras.optimizers.Optimizer, weights: Mapping[str, keras.Variable]
) -> dict[str, keras.Variable]:
    """Returns the optimizer's variables by name. Names of slots contain the key of the weight."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    keys = {id(weight): key for key, weight in weights.items()}
    slots = {
        id(slot): f"{kind.strip('_')}/{keys[id(weight)]}"
        for kind, some in slot_lists(inner).items()
        for weight, slot in zip(trained_variables(inner), some, strict=True)
        if isinstance(slot, keras.Variable)
    }
    variables = optimizer.variables
    names = [slots.get(id(variable), variable.path.split("/")[-1]) for variable in variables]
    seen: dict[str, int] = defaultdict(int)
    unique = {}
    for name, variable in zip(names, variables, strict=True):
        seen[name] += 1
        unique[f"{name}#{seen[name] - 1}" if seen[name] > 1 else name] = variable
    return unique


def replicas(variable: keras.Variable) -> list:
    """Returns the copies of a variable on the replicas of this worker."""
    strategy = getattr(variable.value, "distribute_strategy", None)
    if strategy is None or strategy.num_replicas_in_sync == 1:
        return [variable]
    return list(strategy.experimental_local_results(variable.value))


def _kinds(model: keras.Model, variables: Mapping[str, keras.Variable]) -> dict[str, str]:
    """Finds the variables whose values differ between replicas.

    Returns:
        "rows" or "sum" by key of the variable: the value consists of the rows of all replicas, or
        is the sum over the replicas.
    """
    carried = {id(variable) for variable in carried_state(model)}
    kinds = {}
    for key, variable in variables.items():
        if id(variable) in carried:
            kinds[key] = "rows"
        elif (variable.synchronization, variable.aggregation) == ("on_read", "sum"):
            kinds[key] = "sum"
    return kinds


def _from_all_replicas(
    variables: Mapping[str, keras.Variable], workers: Workers
) -> dict[str, list[np.ndarray]]:
    """Returns the values of each variable on the replicas of all workers, by key."""
    here = {
        key: np.stack([keras.ops.convert_to_numpy(value) for value in replicas(variable)])
        for key, variable in variables.items()
    }
    # `gather` uses float64, which holds all values of the other types exactly.
    rows = workers.gather(np.concatenate([values.ravel() for values in here.values()]))
    ends = np.cumsum([values.size for values in here.values()])[:-1]
    return {
        key: [value for part in column for value in part.reshape(values.shape).astype(values.dtype)]
        for (key, values), column in zip(here.items(), np.split(rows, ends, axis=1), strict=True)
    }


def _without_terms(
    arrays: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, list[np.ndarray]]]:
    """Separates the terms of sums over replicas from the other arrays.

    Returns:
        The other arrays, and the terms of each sum, by key of the variable.
    """
    terms: dict[str, list[np.ndarray]] = defaultdict(list)
    for key in arrays:
        number = 0
        while f"{key}{_REPLICA}{number}" in arrays:
            terms[key].append(arrays[f"{key}{_REPLICA}{number}"])
            number += 1
    names = {f"{key}{_REPLICA}{n}" for key, values in terms.items() for n in range(len(values))}
    return {key: array for key, array in arrays.items() if key not in names}, terms


def _by_path(
    variables: Mapping[str, keras.Variable], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Renames the numbered arrays of an old version to the current keys.

    Groups of arrays that do not fit keep their numbers, so that `_check` reports them.
    """
    named: dict[str, np.ndarray] = {}
    for group in dict.fromkeys(key.split("/")[0] for key in variables):
        keys = [key for key in variables if key.startswith(f"{group}/")]
        values = [arrays[f"{group}/{i}"] for i in range(len(arrays)) if f"{group}/{i}" in arrays]
        fits = len(keys) == len(values) and all(
            tuple(variables[key].shape) == value.shape
            for key, value in zip(keys, values, strict=True)
        )
        if fits:
            named.update(zip(keys, values, strict=True))
        elif group == "metrics":  # sums of the current epoch, of a metric that has changed since
            print(
                "the checkpoint is of an old version: the metrics of this epoch include only the "
                "batches from here on",
                file=sys.stderr,
            )
            named.update({key: keras.ops.convert_to_numpy(variables[key]) for key in keys})
        else:
            named.update({f"{group}/{number}": value for number, value in enumerate(values)})
    return named


def _check(
    variables: Mapping[str, keras.Variable],
    arrays: Mapping[str, np.ndarray],
    parts: Mapping[str, int],
) -> None:
    """Raises `RunError` if names or shapes of the arrays differ from the variables.

    Args:
        variables: The variables by key.
        arrays: The arrays by key.
        parts: The number of replicas that share the rows of an array, by key.
    """
    wrong = set(variables) ^ set(arrays)
    for key in set(variables) & set(arrays):
        shape = tuple(variables[key].shape)
        if key in parts:
            shape = (shape[0] * parts[key], *shape[1:])
        if shape != arrays[key].shape:
            wrong.add(key)
    if wrong:
        raise RunError(
            "the checkpoint is of another model: use the options with which it was written. "
            f"Received: {len(wrong)} variables that the model or the checkpoint lacks, or of other "
            f"shapes, such as {', '.join(sorted(wrong)[:3])}"
        )
