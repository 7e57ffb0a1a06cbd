"""Values of JSON as TensorFlow Serving's REST interface understands them.

Errors are told in the words of TensorFlow Serving, whose users search for them.
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
    """The object in the body of a request.

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
    """The signature that a request names; "" for none."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {shown(document)} not formatted correctly. 'signature_name' key must "
            "be a string value."
        )
    return name


def encode(text: str) -> bytes:
    """The bytes of a string of JSON, whose escapes may be halves of a character."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(
            "JSON Parse error: The surrogate pair in string is invalid. In: " + shown(text)
        ) from error


def decode_base64(value: Mapping[str, Any]) -> bytes:
    """The bytes of `{"b64": "..."}`.

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
    """What TensorFlow Serving calls the type of a value of JSON."""
    return str(value) if isinstance(value, bool) else _TYPES[type(value)]


def shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = ""
    try:
        for part in json.JSONEncoder(indent=4, ensure_ascii=False).iterencode(value):
            text += part
            if len(text) > _MOST_SHOWN:
                break
    except RecursionError:
        return "(too deeply nested to be shown)"
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."
