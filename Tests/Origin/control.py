"""Commands to the origin: lines of JSON on its standard input, or requests to its control port."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Callable, Dict
from urllib.parse import parse_qsl, urlsplit

from ledger import Ledger

Command = Dict[str, Any]


async def perform(ledger: Ledger, command: Command) -> Dict[str, Any]:
    """Carry out one command; what it cannot do is said under `error`."""
    name = command.get("do")
    try:
        if name == "release":
            count = command.get("count")
            ledger.release(command["gate"], None if count is None else int(count))
            return {}
        if name == "close":
            gate = ledger.gate(command["gate"])
            gate.open, gate.permits = False, 0
            return {}
        if name == "await":
            await ledger.wait(condition(ledger, command))
            return ledger.counts()
        if name == "script":
            ledger.scripts[command["target"]] = list(command["answers"])
            return {}
        if name == "log":
            return {"exchanges": ledger.log(command.get("path", ""))}
        if name == "counts":
            return ledger.counts()
        if name == "reset":
            ledger.reset()
            return {}
    except (KeyError, ValueError, TypeError) as error:
        return {"error": f"{name}: {error!r}"}
    return {"error": f"`do` must be the name of a command (given: {name!r})"}


def condition(ledger: Ledger, command: Command) -> Callable[[], bool]:
    """The condition of `await`: counters reach at least the number, other counts fall to at most the number."""
    if "held" in command:
        gate, held = command["gate"], int(command["held"])
        return lambda: len(ledger.gate(gate).waiting) >= held
    if "requests" in command:
        target, requests = command.get("target"), int(command["requests"])
        if target is None:
            return lambda: len(ledger.exchanges) >= requests
        return lambda: ledger.requests(target) >= requests
    for name in ("left", "complete", "broken"):
        if name in command:
            many = int(command[name])
            return lambda: ledger.ended[name] >= many
    if "open" in command:
        connections = int(command["open"])
        return lambda: ledger.open <= connections
    if "active" in command:
        active = int(command["active"])
        return lambda: ledger.active <= active
    raise ValueError("await what? held, requests, left, complete, broken, open or active")


async def serve_control(ledger: Ledger, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One control request a connection: `/release?gate=a`, or a POST with the members in a JSON body."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        target = head.split(" ", 2)[1]
        length = next(
            (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
        )
        parts = urlsplit(target)
        command: Command = {"do": parts.path.strip("/"), **dict(parse_qsl(parts.query))}
        if length:
            command.update(json.loads(await reader.readexactly(length)))
        answer = await perform(ledger, command)
        body = json.dumps(answer).encode() + b"\n"
        status = b"400 Bad Request" if "error" in answer else b"200 OK"
        writer.write(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % (status, len(body)))
        writer.write(b"Connection: close\r\n\r\n" + body)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError, ValueError):
        pass  # whoever asked is gone, or never spoke HTTP
    finally:
        writer.close()
