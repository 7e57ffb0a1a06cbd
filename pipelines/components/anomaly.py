"""Anomaly: an expectation of a schema that the examples do not meet."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Anomaly:
    """An expectation that the examples do not meet.

    Args:
        expectation: Name of the expectation in the schema, or "columns" for a missing or an
            unexpected column.
        severity: "error" or "warning".
        column: Name of the column.
        split: Name of the split; empty if the anomaly concerns no particular split.
        message: Description for the user, with the values found and expected.
    """

    expectation: str
    severity: str
    column: str
    split: str
    message: str
