"""Limits of the size and number of requests."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from keras_drill.workbench.serving.errors import ServingError, invalid


@dataclasses.dataclass(frozen=True)
class Limits:
    """Maximum size and number of requests.

    Args:
        request_bytes: Maximum bytes in the body of a request.
        rows: Maximum size of the first dimension of an input.
        text_bytes: Maximum bytes of a string.
        values: Maximum number of values of an input.
        waiting: Maximum number of waiting requests.
        seconds: Maximum duration of a request in seconds. A client may set a shorter time.

    Example:

    >>> Limits(rows=1).check({"texts": np.array([b"a", b"b"], object)})
    Traceback (most recent call last):
    keras_drill.workbench.serving.errors.ServingError: Input texts has 2 rows; at most 1 are allowed
    """

    request_bytes: int = 4 * 1024 * 1024
    rows: int = 1024
    text_bytes: int = 64 * 1024
    values: int = 1_000_000
    waiting: int = 512
    seconds: float = 60.0

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raises `ServingError` if a shape is too large, before memory is allocated for it."""
        if shape and shape[0] > self.rows:
            raise invalid(f"Input {name} has {shape[0]} rows; at most {self.rows} are allowed")
        if any(size < 0 for size in shape) or math.prod(shape) > self.values:
            raise invalid(
                f"Input {name} has the shape {list(shape)}; at most {self.values} values are "
                "allowed"
            )

    def check(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Raises `ServingError` if an input is too large."""
        for name, value in inputs.items():
            self.check_shape(name, value.shape)
            if value.dtype != object:
                continue
            longest = max(map(len, value.ravel()), default=0)
            if longest > self.text_bytes:
                raise invalid(
                    f"Input {name} has a string of {longest} bytes; at most {self.text_bytes} "
                    "are allowed"
                )

    def too_many_waiting(self) -> ServingError:
        """Returns the error for a request that arrives while too many requests are waiting."""
        return ServingError(
            "RESOURCE_EXHAUSTED",
            f"{self.waiting} requests are waiting for their answers already; try again later",
        )
