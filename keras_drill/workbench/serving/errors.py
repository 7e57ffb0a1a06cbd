"""Errors of requests, with a gRPC status code and the matching HTTP status."""

import grpc

# The mapping of TensorFlow Serving's REST interface.
_HTTP = {
    "CANCELLED": 499,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "UNAUTHENTICATED": 401,
}
_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


class ServingError(Exception):
    """Error of a refused or failed request, with the same message on all interfaces.

    Args:
        code: Name of a `grpc.StatusCode`.
        message: The error message.
        http_status: HTTP status; by default the status that TensorFlow Serving uses for `code`.

    Example:

    >>> ServingError("NOT_FOUND", "Servable not found for request: Latest(cats)").http_status
    404
    """

    def __init__(self, code: str, message: str, http_status: int | None = None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.http_status = http_status or _HTTP.get(code, 500)


def invalid(message: str) -> ServingError:
    """Returns the error for an invalid request."""
    return ServingError("INVALID_ARGUMENT", message)


def error_of_tensorflow(error) -> ServingError:
    """Converts a `tf.errors.OpError`. The message loses the lines that name graph nodes.

    >>> import tensorflow as tf
    >>> error_of_tensorflow(tf.errors.InvalidArgumentError(None, None, "Bad.\\n\\t [[x]]")).message
    'Bad.'
    """
    lines = [line for line in error.message.splitlines() if not line.strip().startswith("[[")]
    return ServingError(_NAMES.get(error.error_code, "UNKNOWN"), "\n".join(lines).strip())
