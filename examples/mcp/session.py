"""One client's session of the Model Context Protocol: versions, requests, cancellation and progress. It knows no tool by name."""

from __future__ import annotations

import asyncio
import difflib
import functools
import logging
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Union

from calls import Progress, Send, Tool, answered
from jsonrpc import (
    ID,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Fault,
    Request,
    Response,
    encoded,
    error,
    is_id,
    parsed,
    request_of,
    result,
)
from lines import LONGEST_LINE

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The supported versions of the protocol, the latest first. Calls of tools are the same in all of them."""
WITH_BATCHES = "2025-03-26"
"""The only version in which a line may be a list of messages."""
MOST_PENDING = 256
"""Calls that may be under way. Further ones are refused."""

logger = logging.getLogger("mcp")


@dataclass(frozen=True)
class Call:
    """A call of a tool that has not begun."""

    identity: ID
    run: Callable[[], Awaitable[Response]]


class Session:
    """Takes the client's lines by `receive`, and sends lines by `send`. All on one event loop."""

    def __init__(self, info: Mapping[str, str], instructions: str, tools: List[Tool], send: Send, at_once: int) -> None:
        """`at_once` tools run at the same time. A tool counts until its result is written: no more results are in memory."""
        self._info = info
        self._instructions = instructions
        self._tools = {tool.name: tool for tool in tools}
        self._send = send
        self._running = asyncio.Semaphore(at_once)
        self._pending: Dict[ID, "asyncio.Task[Response]"] = {}
        self._batches: "set[asyncio.Task[None]]" = set()
        self._version: Optional[str] = None

    async def end(self, cancels: bool) -> None:
        """Waits until all calls have ended, or cancels them."""
        tasks = list(self._pending.values())
        for task in tasks if cancels else ():
            task.cancel()
        await asyncio.gather(*tasks, *self._batches, return_exceptions=True)

    # Lines

    def receive(self, line: Optional[bytes]) -> None:
        """Takes a line, or None for one that was too long to be read."""
        try:
            if line is None:
                raise Fault(INVALID_REQUEST, f"a line must have at most {LONGEST_LINE:,} bytes")
            message = parsed(line)
            if isinstance(message, list):
                return self._take_batch(message)
            outcome = self._outcome(message)
        except Fault as fault:
            outcome = error(fault)
        if isinstance(outcome, Call):
            self._begin(outcome, is_alone=True)
        elif outcome is not None:
            self._send(encoded(outcome))

    def _take_batch(self, messages: List[Any]) -> None:
        """Raises Fault."""
        if self._version != WITH_BATCHES:
            raise Fault(INVALID_REQUEST, f"a message must be a JSON object; only version {WITH_BATCHES} has lists of them")
        if not 0 < len(messages) <= MOST_PENDING:
            raise Fault(INVALID_REQUEST, f"a list must have 1 to {MOST_PENDING} messages")
        begun = [self._take_part(message) for message in messages]
        task = asyncio.ensure_future(self._send_all(begun))
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)

    def _take_part(self, message: Any) -> "Union[None, Response, asyncio.Task[Response]]":
        """Begins the call of a message of a batch before the next message is taken, which may have the same id."""
        outcome = self._outcome(message)
        return self._begin(outcome, is_alone=False) if isinstance(outcome, Call) else outcome

    async def _send_all(self, begun: "List[Union[None, Response, asyncio.Task[Response]]]") -> None:
        """Sends the responses to a batch when all of its calls have ended. Cancelled calls have none."""
        tasks = [each for each in begun if isinstance(each, asyncio.Task)]
        await asyncio.gather(*tasks, return_exceptions=True)
        ready = [each for each in begun if isinstance(each, dict)]
        ready += [task.result() for task in tasks if not task.cancelled()]
        if ready:
            await self._send(encoded(ready))

    def _begin(self, call: Call, is_alone: bool) -> "asyncio.Task[Response]":
        task = asyncio.ensure_future(self._run(call, is_alone))
        self._pending[call.identity] = task
        task.add_done_callback(lambda _: self._pending.pop(call.identity))
        return task

    async def _run(self, call: Call, is_alone: bool) -> Response:
        async with self._running:
            response = await call.run()
            if is_alone:
                await self._send(encoded(response))
            return response

    # Messages

    def _outcome(self, message: Any) -> Union[None, Response, Call]:
        """The response to a message, the call that makes it, or nothing."""
        request = None
        try:
            request = request_of(message)
            if request is None:
                return None
            if request.identity is None:
                self._note(request)
                return None
            if request.identity in self._pending:
                raise Fault(INVALID_REQUEST, f"the id {request.identity!r} belongs to a request that is under way")
            if request.method == "tools/call":
                return self._call(request, request.identity)
            return result(request.identity, self._answer(request))
        except Fault as fault:
            if request is not None and request.identity not in self._pending:
                fault.identity = request.identity
            return error(fault)

    def _note(self, request: Request) -> None:
        """Takes a notification. An unknown one has no effect, and neither has one for a request that has ended."""
        if request.method == "notifications/cancelled":
            identity: Any = request.params.get("requestId")
            task = self._pending.get(identity) if is_id(identity) else None
            if task is not None:
                task.cancel()

    def _answer(self, request: Request) -> Mapping[str, Any]:
        """The result of a method that is no call of a tool. Raises Fault."""
        if request.method == "initialize":
            return self._initialize(request.params)
        if request.method == "ping":
            return {}
        if request.method == "tools/list":
            self._check_initialized()
            if request.params.get("cursor") is not None:
                raise Fault(INVALID_PARAMS, "cursor must be left out: the list has one page")
            return {"tools": [tool.listed() for tool in self._tools.values()]}
        raise Fault(METHOD_NOT_FOUND, "the methods are initialize, ping, tools/list and tools/call")

    def _initialize(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise Fault(INVALID_PARAMS, f"protocolVersion must be a string, such as {VERSIONS[0]}")
        if self._version is not None:
            raise Fault(INVALID_REQUEST, "the session is initialized already")
        self._version = wanted if wanted in VERSIONS else VERSIONS[0]
        logger.info("protocol version %s", self._version)
        return {
            "protocolVersion": self._version,
            "capabilities": {"tools": {}},
            "serverInfo": self._info,
            "instructions": self._instructions,
        }

    def _check_initialized(self) -> None:
        if self._version is None:
            raise Fault(INVALID_REQUEST, "the first request must be initialize")

    # Calls

    def _call(self, request: Request, identity: ID) -> Call:
        """Raises Fault."""
        self._check_initialized()
        if len(self._pending) >= MOST_PENDING:
            raise Fault(INVALID_REQUEST, f"{MOST_PENDING} calls are under way: wait for some of them")
        name, arguments = request.params.get("name"), request.params.get("arguments")
        meta = request.params.get("_meta")
        if not isinstance(name, str):
            raise Fault(INVALID_PARAMS, "name must be the name of a tool")
        if name not in self._tools:
            near = difflib.get_close_matches(name, self._tools, 1)
            hint = f"did you mean {near[0]}?" if near else f"the tools are {', '.join(self._tools)}"
            raise Fault(INVALID_PARAMS, f"unknown tool {name[:40]!r}: {hint}")
        if not isinstance(arguments, (dict, type(None))):
            raise Fault(INVALID_PARAMS, "arguments must be an object")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None and not is_id(token):
            raise Fault(INVALID_PARAMS, "progressToken must be a string or an integer")
        report = Progress(self._send, token).report
        return Call(identity, functools.partial(answered, self._tools[name], arguments or {}, identity, report))
