"""Reading of JSON values as in TensorFlow Serving's REST interface.

Error messages are the same as in TensorFlow Serving, so that users can search for them.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from keras_drill.workbench.serving.errors import invalid

_MOST_SHOWN = 500  # characters of a value in a message
_TYPES = {
    type(None): "Null",
    dict: "Object",
    list: "Array",
    str: "String",
    int: "Number",
    float: "Number",
}


def parse_json(body: bytes) -> dict[str, Any]:
    """Parses the body of a request, which must be a JSON object.

    Example:

    >>> parse_json(b'{"instances": [NaN]}')
    {'instances': [nan]}
    >>> parse_json(b"[1]")
    Traceback (most recent call last):
    keras_drill.workbench.serving.errors.ServingError: JSON Value: [
        1
    ] Is not object
    """
    if not body.strip():
        raise invalid("JSON Parse error: The document is empty")
    try:
        document = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise invalid(
            f"JSON Parse error: Invalid encoding in string. at offset: {error.start}"
        ) from error
    except json.JSONDecodeError as error:
        raise invalid(f"JSON Parse error: {error.msg} at offset: {error.pos}") from error
    except (RecursionError, ValueError) as error:  # the latter of numbers with too many digits
        raise invalid(f"JSON Parse error: {error}") from error
    if not isinstance(document, dict):
        raise invalid(f"JSON Value: {shown(document)} Is not object")
    return document


def signature_name(document: Mapping[str, Any]) -> str:
    """Returns the name of the signature in a request, "" if the request names no signature."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {shown(document)} not formatted correctly. 'signature_name' key must "
            "be a string value."
        )
    return name


def encode(text: str) -> bytes:
    """Encodes a JSON string as UTF-8. Raises `ServingError` for half of a surrogate pair."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(
            "JSON Parse error: The surrogate pair in string is invalid. In: " + shown(text)
        ) from error


def decode_base64(value: Mapping[str, Any]) -> bytes:
    """Decodes the base64 string of an object `{"b64": "..."}`.

    >>> decode_base64({"b64": "AP8="}), decode_base64({"b64": "AP8"})
    (b'\\x00\\xff', b'\\x00\\xff')
    """
    if not is_base64(value):
        raise invalid(f"JSON Value: {shown(value)} not formatted correctly for base64 data")
    text = re.sub(r"\s+|=+\s*$", "", value["b64"])
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("Unable to base64 decode") from error


def is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def json_type(value: Any) -> str:
    """Returns the name of a JSON value's type in TensorFlow Serving's error messages."""
    return str(value) if isinstance(value, bool) else _TYPES[type(value)]


def shown(value: Any) -> str:
    """Formats a value for a message, and truncates long values."""
    text = ""
    try:
        for part in json.JSONEncoder(indent=4, ensure_ascii=False).iterencode(value):
            text += part
            if len(text) > _MOST_SHOWN:
                break
    except RecursionError:
        return "(too deeply nested to be shown)"
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
