"""What a request is refused with: a code of gRPC's, which REST tells as a status of HTTP."""

import grpc

# As TensorFlow Serving's REST interface maps them.
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
    """A refusal, or a failure, with one message for every interface.

    Args:
        code: Name of a `grpc.StatusCode`.
        message: What is wrong.
        http_status: Where it is not the one that TensorFlow Serving gives to `code`.

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
    """The error of a request that is not formed as it should be."""
    return ServingError("INVALID_ARGUMENT", message)


def error_of_tensorflow(error) -> ServingError:
    """What a `tf.errors.OpError` says, without the places in the graph that it names.

    >>> import tensorflow as tf
    >>> error_of_tensorflow(tf.errors.InvalidArgumentError(None, None, "Bad.\\n\\t [[x]]")).message
    'Bad.'
    """
    lines = [line for line in error.message.splitlines() if not line.strip().startswith("[[")]
    return ServingError(_NAMES.get(error.error_code, "UNKNOWN"), "\n".join(lines).strip())
