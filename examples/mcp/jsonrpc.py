"""The messages of JSON-RPC 2.0 as the Model Context Protocol uses them."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NamedTuple, Optional, Union

ID = Union[str, int]
Response = Dict[str, Any]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class Fault(Exception):
    """A fault of the protocol, which is answered by an error with this code."""

    def __init__(self, code: int, message: str, identity: Optional[ID] = None) -> None:
        super().__init__(message)
        self.code = code
        self.identity = identity


class Request(NamedTuple):
    """A request, or a notification if `identity` is None."""

    method: str
    params: Mapping[str, Any]
    identity: Optional[ID]


def is_id(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def parsed(line: bytes) -> Any:
    """The JSON value of a line. Raises Fault."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:  # A UnicodeDecodeError is a ValueError.
        raise Fault(PARSE_ERROR, f"a line must be one JSON value in UTF-8: {error}") from None


def request_of(message: Any) -> Optional[Request]:
    """The request or notification in a message. None for a response, which a server without requests ignores. Raises Fault."""
    if not isinstance(message, dict):
        raise Fault(INVALID_REQUEST, "a message must be a JSON object")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    identity = message.get("id")
    if "id" in message and not is_id(identity):
        raise Fault(INVALID_REQUEST, "id must be a string or an integer; leave it out of a notification")
    if message.get("jsonrpc") != "2.0":
        raise Fault(INVALID_REQUEST, 'jsonrpc must be "2.0"', identity)
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise Fault(INVALID_REQUEST, "method must be a string", identity)
    if not isinstance(params, (dict, type(None))):
        raise Fault(INVALID_PARAMS, "params must be an object", identity)
    return Request(method, params or {}, identity)


def result(identity: ID, content: Mapping[str, Any]) -> Response:
    return {"jsonrpc": "2.0", "id": identity, "result": content}


def error(fault: Fault) -> Response:
    return {"jsonrpc": "2.0", "id": fault.identity, "error": {"code": fault.code, "message": str(fault)}}


def notification(method: str, params: Mapping[str, Any]) -> Dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encoded(message: Any) -> bytes:
    """A line, in ASCII: a result has no line break within it, whatever a client takes for one."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
