"""One client's connection: requests in, planned answers out, held, dripped or broken as the plan says."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import List, Optional, Tuple, cast

from answer import Answer, Request, answer
from ledger import Exchange, Ledger
from plan import END, HEADERS, MID_HEADERS, START, BadPlan, Plan, plan

STEP = 1 << 18
LONGEST_HEAD = 1 << 20
TCP_ESTABLISHED = 1


class Left(Exception):
    """The client is gone."""


def is_plain(planned: Plan, made: Answer) -> bool:
    """Nothing can happen on the way, so that head and body may go in one piece."""
    stops = planned.holds or planned.drip or planned.broken_at is not None
    return not stops and not made.chunked and made.body.length <= STEP


class Connection(asyncio.Protocol):
    """A client that closes its side counts as gone: no HTTP client half-closes and means it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=STEP, low=0)
        self._writable.set()
        self._number = self._ledger.connected()
        self._port: int = transport.get_extra_info("sockname")[1]
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._arrived.set()

    def eof_received(self) -> bool:
        self._leave()
        return False

    def connection_lost(self, error: Optional[Exception]) -> None:
        self._leave()
        self._ledger.disconnected()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _has_left(self) -> bool:
        if self._gone or self._transport.is_closing():
            return True
        own: socket.socket = self._transport.get_extra_info("socket")
        # The first byte of tcp_info is the state (linux/tcp.h).
        return own.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_ESTABLISHED

    def _leave(self) -> None:
        if not self._gone:
            self._gone = True
            self._task.cancel()

    async def _serve(self) -> None:
        try:
            keep_alive = True
            while keep_alive:
                request = await self._request()
                if request is None:
                    break
                keep_alive = await self._exchange(request)
        except (asyncio.CancelledError, Left):
            pass
        finally:
            self._transport.close()

    async def _request(self) -> Optional[Request]:
        """The next request; None when what came is none."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > LONGEST_HEAD:
                return None
            await self._more()
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = lines[0].split(" ")
        if len(parts) != 3:
            return None
        headers: List[Tuple[str, str]] = []
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
        request = Request(parts[0], parts[1], parts[2], headers)
        length = int(request.fields.get("content-length", "0"))
        while len(self._buffer) < length:
            await self._more()
        request.body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return request

    async def _more(self) -> None:
        self._arrived.clear()
        await self._arrived.wait()

    async def _exchange(self, request: Request) -> bool:
        """Answer one request; true when the connection is good for another."""
        exchange = self._ledger.begin(
            request.method, request.target, request.headers, self._number, self._port, self._has_left
        )
        exchange.body = len(request.body)
        how = "left"
        try:
            target = self._ledger.scripted(request.target)
            planned = plan(target, self._ledger.requests(request.target), request.fields)
            if planned.delay:
                await asyncio.sleep(planned.delay)
            keep_alive = await self._answer(request, planned, exchange)
            how = "complete" if planned.broken_at is None and planned.raw is None else "broken"
            return keep_alive
        except BadPlan as refusal:
            how = "complete"
            text = f"{refusal}\n".encode()
            head = b"HTTP/1.1 500 Not On The Menu\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
            await self._send(head % len(text) + text)
            exchange.status = 500
            return True
        finally:
            self._ledger.end(exchange, how)

    async def _answer(self, request: Request, planned: Plan, exchange: Exchange) -> bool:
        if not await self._pass(planned, START):
            return False
        if planned.raw is not None:
            await self._send(planned.raw)
            return False
        made = answer(request, planned, self._number)
        exchange.status = made.status
        if planned.endless_headers:
            await self._endless_headers(made)
        if is_plain(planned, made):
            await self._send(made.head + made.body.read(0, made.body.length))
            exchange.sent = made.body.length
            return made.keep_alive and not planned.close
        half = len(made.head) // 2
        breaks_here = planned.broken_at == MID_HEADERS or any(at == MID_HEADERS for at, _ in planned.holds)
        if breaks_here:
            await self._send(made.head[:half])
            if not await self._pass(planned, MID_HEADERS):
                return False
            await self._send(made.head[half:])
        else:
            await self._send(made.head)
        if not await self._pass(planned, HEADERS):
            return False
        if not await self._body(made, planned, exchange):
            return False
        return made.keep_alive and not planned.close

    async def _body(self, made: Answer, planned: Plan, exchange: Exchange) -> bool:
        stops = [at for at, _ in planned.holds if at >= 0]
        if planned.broken_at is not None and planned.broken_at >= 0:
            stops.append(planned.broken_at)
        stops = sorted({min(stop, made.body.length) for stop in stops})
        step = planned.drip or (min(STEP, planned.chunk) if made.chunked else STEP)
        at = 0
        while True:
            if stops and stops[0] == at:
                stops.pop(0)
                if not await self._pass(planned, at, last=at == made.body.length):
                    return False
            if at >= made.body.length:
                break
            if planned.drip:
                await self._pause(planned)
            piece = made.body.read(at, min(at + step, stops[0] if stops else END))
            await self._send(b"%x\r\n%b\r\n" % (len(piece), piece) if made.chunked else piece)
            at += len(piece)
            exchange.sent = at
        if made.chunked:
            await self._send(b"0\r\n\r\n")
        return True

    async def _pause(self, planned: Plan) -> None:
        if planned.drip_gate:
            await self._ledger.hold(planned.drip_gate)
        await asyncio.sleep(planned.drip_delay)

    async def _pass(self, planned: Plan, here: int, last: bool = False) -> bool:
        """Wait at this place's gates; false when the connection was broken here. `last` is the place of all beyond."""

        def is_here(at: int) -> bool:
            return at == here or (last and at > here)

        for at, gate in planned.holds:
            if is_here(at):
                await self._ledger.hold(gate)
        if planned.broken_at is None or not is_here(planned.broken_at):
            return True
        await self._flushed()
        if planned.reset:
            own: socket.socket = self._transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        return False

    async def _endless_headers(self, made: Answer) -> None:
        await self._send(made.head[:-2])
        while True:
            await self._send(b"".join(b"X-Endless: %s\r\n" % (b"a" * 1000) for _ in range(16)))

    async def _send(self, data: bytes) -> None:
        if self._gone or self._transport.is_closing():
            raise Left
        self._transport.write(data)
        await self._writable.wait()

    async def _flushed(self) -> None:
        """Everything written is in the kernel's hands."""
        self._transport.set_write_buffer_limits(high=0)
        if self._transport.get_write_buffer_size() > 0:
            self._writable.clear()
            await self._writable.wait()
