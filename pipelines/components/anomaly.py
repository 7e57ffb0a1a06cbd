"""What is found wrong with examples."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Anomaly:
    """One expectation that is not met.

    Args:
        expectation: Its name in the schema, or "columns" for a column that should not be there,
            or is not.
        severity: "error" or "warning".
        column: Where.
        split: Where; empty where it is of no split in particular.
        message: What is wrong, in words and numbers.
    """

    expectation: str
    severity: str
    column: str
    split: str
    message: str
