"""Arguments of tools, checked against their JSON Schema. The messages are for a model, which then sends the right ones."""

from __future__ import annotations

import difflib
import re
from typing import Any, Dict, Mapping


class Refused(Exception):
    """Arguments are wrong. The message names the argument, what it must be, and what was given."""


def checked(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments with the schema's defaults in place of missing ones. Raises Refused.

    The schema is an object's, with the keywords type, minimum, maximum, enum, pattern, maxLength, items, minItems and maxItems. A null
    counts as missing, because models send it so.
    """
    known = schema["properties"]
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"the arguments are {', '.join(known)}"
            raise Refused(f"there is no argument {name[:40]!r}: {hint}")
    values: Dict[str, Any] = {}
    for name, member in known.items():
        if arguments.get(name) is not None:
            values[name] = _value(name, member, arguments[name])
        elif name in schema.get("required", ()):
            raise Refused(f"the argument {name} is missing: it must be {_described(member)}")
        elif "default" in member:
            values[name] = member["default"]
    return values


def _value(name: str, schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, float) and schema["type"] == "integer" and value.is_integer():
        value = int(value)  # JSON Schema takes 3.0 for an integer.
    if not _fits(schema, value):
        raise Refused(f"{name} must be {_described(schema)} (given: {_shortened(value)})")
    if schema["type"] == "array":
        return [_value(f"{name}[{number}]", schema["items"], item) for number, item in enumerate(value)]
    return value


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    if schema["type"] == "integer":
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return is_integer and bool(schema["minimum"] <= value <= schema["maximum"])
    if schema["type"] == "array":
        return isinstance(value, list) and bool(schema["minItems"] <= len(value) <= schema["maxItems"])
    if not isinstance(value, str):
        return False
    if "enum" in schema:
        return value in schema["enum"]
    return len(value) <= schema["maxLength"] and re.search(schema["pattern"], value) is not None


def _described(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "integer":
        return f"an integer from {schema['minimum']:,} to {schema['maximum']:,}"
    if schema["type"] == "array":
        return f"a list of {schema['minItems']} to {schema['maxItems']} items, each {_described(schema['items'])}"
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    return f"a URL of at most {schema['maxLength']:,} characters that begins with http:// or https://"


def _shortened(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} items"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


# Parts of the tools' schemas

URL = {"type": "string", "pattern": "^https?://", "maxLength": 8000, "description": "http or https URL of the image"}


def integer(least: int, most: int, description: str, **more: Any) -> Dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, **more, "description": description}


def max_bytes(default: int) -> Dict[str, Any]:
    return integer(2_000, 5_000_000, "Limit of the result's size in bytes, before base64", default=default)


def arguments(required: str, **properties: Any) -> Dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}
