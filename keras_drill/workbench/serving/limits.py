"""How much a request may ask for."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from keras_drill.workbench.serving.errors import ServingError, invalid


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one request may bring, and how many may wait.

    Args:
        request_bytes: Of the body of a request.
        rows: First dimension of an input.
        text_bytes: Of one string.
        values: Numbers and strings of all inputs together.
        waiting: Requests that wait for their answers.
        seconds: Until an answer; a client may ask for less.

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
        """Refuses shapes before anything of that size is made."""
        if shape and shape[0] > self.rows:
            raise invalid(f"Input {name} has {shape[0]} rows; at most {self.rows} are allowed")
        if any(size < 0 for size in shape) or math.prod(shape) > self.values:
            raise invalid(
                f"Input {name} has the shape {list(shape)}; at most {self.values} values are "
                "allowed"
            )

    def check(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Refuses inputs that are too large."""
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
        """The error of a request for which there is no place."""
        return ServingError(
            "RESOURCE_EXHAUSTED",
            f"{self.waiting} requests are waiting for their answers already; try again later",
        )
