"""The exchanges so far, the gates that hold exchanges back, and a way to wait for either."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple


@dataclass
class Exchange:
    """One request and what became of it."""

    number: int
    method: str
    target: str
    headers: List[Tuple[str, str]]
    connection: int
    port: int
    at: float  # seconds since the origin started
    status: int = 0
    sent: int = 0  # bytes of the body, as they go over the wire but for chunk framing
    body: int = 0  # bytes of the request's body
    ended: str = ""  # `complete`; `broken` by the origin; `left` by the client; nothing while it runs


@dataclass
class Gate:
    """Closed at first. Whoever comes by waits until it is opened for good, or let through one by one."""

    open: bool = False
    permits: int = 0
    waiting: Deque[asyncio.Future[None]] = field(default_factory=deque)

    def release(self, count: Optional[int]) -> None:
        if count is None:
            self.open = True
            count = len(self.waiting)
        else:
            self.permits += max(0, count - len(self.waiting))
        for _ in range(min(count, len(self.waiting))):
            future = self.waiting.popleft()
            if not future.done():  # whoever has just been cancelled is still in the queue
                future.set_result(None)


HasLeft = Callable[[], bool]
"""Whether a client has closed its connection, heard of or not."""


class Ledger:
    """The one place that knows what the origin has seen. Everything in it is touched on the event loop only."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._gates: Dict[str, Gate] = {}
        self._waits: List[Tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._connections = 0
        self.open = 0
        self.scripts: Dict[str, List[str]] = {}
        self._clear()

    def _clear(self) -> None:
        self.exchanges: List[Exchange] = []
        self._requests: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        """The exchanges by their ends."""
        self._active: Dict[int, Tuple[Exchange, HasLeft]] = {}
        self._most_active = 0
        self._most_active_at: Counter[int] = Counter()
        self._most_open = self.open

    def reset(self) -> None:
        """Forget the log, the counts, the scripts and the gates, and let go whoever is held. Open connections stay."""
        self._clear()
        self.scripts.clear()
        for gate in self._gates.values():
            gate.release(None)
        self._gates.clear()
        self._changed()

    def connected(self) -> int:
        self._connections += 1
        self.open += 1
        self._most_open = max(self._most_open, self.open)
        self._changed()
        return self._connections

    def disconnected(self) -> None:
        self.open -= 1
        self._changed()

    def begin(
        self, method: str, target: str, headers: List[Tuple[str, str]], connection: int, port: int, has_left: HasLeft
    ) -> Exchange:
        at = round(time.monotonic() - self._started, 6)
        exchange = Exchange(len(self.exchanges) + 1, method, target, headers, connection, port, at)
        self.exchanges.append(exchange)
        self._requests[target] += 1
        self._active[id(exchange)] = (exchange, has_left)
        self._count_active(port)
        self._changed()
        return exchange

    def _count_active(self, port: int) -> None:
        """Who has left and is not done with does not count: his going is heard of after the next request, which he may
        have sent upon it."""
        here = sum(other.port == port for other, _ in self._active.values())
        if len(self._active) <= self._most_active and here <= self._most_active_at[port]:
            return
        present = [other for other, has_left in self._active.values() if not has_left()]
        self._most_active = max(self._most_active, len(present))
        here = sum(other.port == port for other in present)
        self._most_active_at[port] = max(self._most_active_at[port], here)

    def end(self, exchange: Exchange, how: str) -> None:
        exchange.ended = how
        if self._active.pop(id(exchange), None) is not None:  # Otherwise it began before a reset.
            self.ended[how] += 1
        self._changed()

    @property
    def active(self) -> int:
        return len(self._active)

    def requests(self, target: str) -> int:
        """How many requests came for exactly this target."""
        return self._requests[target]

    def scripted(self, target: str) -> str:
        """The meaning of a target: itself, or the next line of its script; the last line stays."""
        script = self.scripts.get(target)
        return script[min(self.requests(target), len(script)) - 1] if script else target

    def gate(self, name: str) -> Gate:
        return self._gates.setdefault(name, Gate())

    def release(self, name: str, count: Optional[int]) -> None:
        self.gate(name).release(count)
        self._changed()

    async def hold(self, name: str) -> None:
        gate = self.gate(name)
        if gate.open:
            return
        if gate.permits > 0:
            gate.permits -= 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gate.waiting.append(future)
        self._changed()
        try:
            await future
        finally:
            if future in gate.waiting:
                gate.waiting.remove(future)
            self._changed()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Return as soon as the condition holds; it is looked at after every change."""
        if condition():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waits.append((condition, future))
        await future

    def _changed(self) -> None:
        still: List[Tuple[Callable[[], bool], asyncio.Future[None]]] = []
        for condition, future in self._waits:
            if future.done():
                continue
            if condition():
                future.set_result(None)
            else:
                still.append((condition, future))
        self._waits = still

    def log(self, path: str = "") -> List[Dict[str, Any]]:
        """Every exchange, or those whose target begins with `path`."""
        return [asdict(exchange) for exchange in self.exchanges if path in exchange.target]

    def counts(self) -> Dict[str, Any]:
        return {
            "requests": len(self.exchanges),
            "active": self.active,
            "mostActive": self._most_active,
            "mostActiveAt": dict(self._most_active_at),
            "connections": self._connections,
            "open": self.open,
            "mostOpen": self._most_open,
            "left": self.ended["left"],
            "held": {name: len(gate.waiting) for name, gate in self._gates.items()},
        }
