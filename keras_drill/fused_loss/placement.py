"""The placement of an output layer's labels under a Keras distribution."""

from typing import Any, NamedTuple

import keras


class Placement(NamedTuple):
    """The partition of a walk over the devices of a mesh.

    Attributes:
        mesh: `jax.sharding.Mesh`.
        token_axis: Name of the mesh axis over which the tokens are split, of size 1 or more.
        label_axis: Name of the mesh axis over which the labels are split, or `None`.
        num_labels: M, the number of labels of all devices, without padding rows.
    """

    mesh: Any
    token_axis: str
    label_axis: str | None
    num_labels: int

    @property
    def num_shards(self) -> int:
        return 1 if self.label_axis is None else self.mesh.shape[self.label_axis]

    @property
    def num_token_shards(self) -> int:
        return self.mesh.shape[self.token_axis]


def placement_of(table: keras.Variable, axis: int, num_labels: int) -> Placement | None:
    """Returns the placement of the labels that are computed from a table; `None` on one device.

    Args:
        table: Variable with a row, or a column, for each label.
        axis: The axis of the table that has the labels.
        num_labels: Number of labels, without padding rows.
    """
    distribution = _distribution()
    if distribution is None:
        return None
    mesh, token_axis = distribution.device_mesh.backend_mesh, distribution.batch_dim_name
    label_axis = _split_over(distribution, table, axis)
    # Over an axis that splits both, only the tokens are split: each device then has all labels.
    if label_axis is not None and (label_axis == token_axis or mesh.shape[label_axis] == 1):
        label_axis = None
    return Placement(mesh, token_axis, label_axis, num_labels)


def check_split_alike(table: keras.Variable, axis: int, others: list) -> None:
    """Raises `ValueError` if variables with an entry per label are not split as the labels are.

    Otherwise devices would have to exchange these variables or their gradients.

    Args:
        table, axis: As in `placement_of`.
        others: Variables `[M]`, or `None`.
    """
    distribution = _distribution()
    if distribution is None:
        return
    expected = _split_over(distribution, table, axis)
    for variable in others:
        if variable is None:
            continue
        found = _split_over(distribution, variable, 0)
        if found != expected:
            raise ValueError(
                f"The layout map must split {variable.path!r} as it splits {table.path!r}, over "
                f"the mesh axis {expected!r} (None: not split). Set `heads` and `embeddings` of "
                "keras_drill.distribute.layout_map to the names of these layers. "
                f"Received: mesh axis {found!r}"
            )


def check_rows(path: str, rows: int, advice: str) -> None:
    """Raises `ValueError` if a distribution would split a variable's rows into unequal parts.

    Args:
        path: Path of the variable, which need not exist yet.
        rows: Number of its rows.
        advice: Advice for the error message, with `{rows}` for the next valid number.
    """
    distribution = _distribution()
    layout = distribution and distribution.get_tensor_layout(path)
    if not layout or layout.axes[0] is None:
        return
    mesh = distribution.device_mesh
    devices = mesh.shape[list(mesh.axis_names).index(layout.axes[0])]
    if rows % devices:
        raise ValueError(
            f"The number of rows of {path!r} must be a multiple of the {devices} devices that "
            f"share the rows: {advice.format(rows=-(-rows // devices) * devices)}. "
            f"Received: {rows} rows"
        )


def _split_over(distribution, variable, axis: int) -> str | None:
    """Returns the mesh axis over which an axis of a variable is split."""
    layout = distribution.get_variable_layout(variable)
    # Before Keras 3.13 layouts were JAX shardings; a layout map may still return one.
    axes = layout.axes if isinstance(layout, keras.distribution.TensorLayout) else layout.spec
    return axes[axis] if axis < len(axes) else None


def _distribution():
    """Returns Keras' distribution over several devices, or `None`. Only JAX has distributions."""
    if keras.backend.backend() != "jax":
        return None
    distribution = keras.distribution.distribution()
    if distribution is None or distribution.device_mesh.devices.size == 1:
        return None
    return distribution
