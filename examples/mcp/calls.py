"""Tools as the session calls them: what a tool is, the response to a call, and its progress."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional

from jsonrpc import ID, INTERNAL_ERROR, Fault, Response, encoded, error, notification, result
from schema import Refused, checked

Content = List[Dict[str, Any]]
Report = Callable[[float, Optional[float], str], None]
"""Tells the client how far a call is, of how much if that is known, and of what."""
Send = Callable[[bytes], Awaitable[None]]
"""Sends a line. The awaitable ends when the line is written, and takes the line back if it is cancelled before."""

logger = logging.getLogger("mcp")


class ToolError(Exception):
    """A tool cannot do what it was asked for. The message is for the model."""


@dataclass(frozen=True)
class Tool:
    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the arguments, with the keywords that `checked` knows."""
    run: Callable[[Dict[str, Any], Report], Awaitable[Content]]
    """Called with checked arguments. Raises ToolError."""

    def listed(self) -> Dict[str, Any]:
        hints = {"title": self.title, "readOnlyHint": True, "openWorldHint": True}
        return {"name": self.name, "description": self.description, "inputSchema": self.schema, "annotations": hints}


async def answered(tool: Tool, arguments: Mapping[str, Any], identity: ID, report: Report) -> Response:
    """The response to a call. A wrong argument or a failure is a result, which the model reads, and no fault of the protocol."""
    try:
        content = await tool.run(checked(tool.schema, arguments), report)
    except (Refused, ToolError) as reason:
        return result(identity, {"content": [{"type": "text", "text": str(reason)}], "isError": True})
    except Exception:
        logger.exception("%s failed", tool.name)
        return error(Fault(INTERNAL_ERROR, f"{tool.name} failed; the server's log has the reason", identity))
    return result(identity, {"content": content, "isError": False})


class Progress:
    """The notifications of one call. Each has a higher number than the one before, as the protocol demands."""

    def __init__(self, send: Send, token: Optional[ID]) -> None:
        """`token` is None if the client wants no notifications."""
        self._send = send
        self._token = token
        self._last = -1.0

    def report(self, progress: float, total: Optional[float], message: str) -> None:
        if self._token is None or progress <= self._last:
            return
        self._last = progress
        params = {"progressToken": self._token, "progress": progress, "message": message}
        self._send(encoded(notification("notifications/progress", {**params, **({} if total is None else {"total": total})})))
