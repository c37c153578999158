"""Servers on raw sockets that send what no server should, over plain connections, TLS and HTTP/2."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Callable, Optional

DATA, HEADERS, PRIORITY, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4

Connection = socket.socket
Handler = Callable[[Connection, str], None]


def server_context(protocol: str) -> ssl.SSLContext:
    """A certificate of its own, which `--insecure` accepts. `protocol` is what ALPN agrees on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        command = "openssl req -x509 -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes".split()
        command += ["-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=127.0.0.1"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        context.load_cert_chain(Path(folder, "cert.pem"), Path(folder, "key.pem"))
    context.set_alpn_protocols([protocol])
    return context


class RawServer(contextlib.AbstractContextManager["RawServer"]):
    """Runs `serve` for each connection, on a thread of its own. `address` 0.0.0.0 stands for all of 127.0.0.0/8."""

    def __init__(
        self, serve: Callable[[Connection], None], context: Optional[ssl.SSLContext] = None, address: str = "127.0.0.1"
    ) -> None:
        self._serve, self._context = serve, context
        self._listener = socket.create_server((address, 0), backlog=4096)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, (peer, _) = self._listener.accept()
                if not peer.startswith("127."):
                    connection.close()
                    continue
                self.connections += 1
                threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: Connection) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
            stack.enter_context(connection)
            self._serve(connection)


def http1(handle: Handler) -> Callable[[Connection], None]:
    """Calls `handle` with the path of each request."""

    def serve(connection: Connection) -> None:
        unread = b""
        while True:
            while b"\r\n\r\n" not in unread:
                arrived = connection.recv(1 << 16)
                if not arrived:
                    return
                unread += arrived
            head, _, unread = unread.partition(b"\r\n\r\n")
            handle(connection, head.split()[1].decode())

    return serve


def tls_records(before: bytes, piece: bytes) -> Callable[[Connection], None]:
    """Answers over TLS with `before` and then, without end, with records of `piece`, many of them in a segment."""
    context = server_context("http/1.1")

    def serve(connection: Connection) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)

        def go_on(step: Callable[[], object]) -> None:
            while True:
                try:
                    step()
                    return connection.sendall(outgoing.read())
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    arrived = connection.recv(1 << 16)
                    if not arrived:
                        raise ConnectionError("closed") from None
                    incoming.write(arrived)

        go_on(tls.do_handshake)
        go_on(lambda: tls.read(1 << 16))
        tls.write(before)
        while True:
            for _ in range(5000):
                tls.write(piece)
            connection.sendall(outgoing.read())

    return serve


def answer(body: bytes, status: str = "200 OK", *fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: image/png", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def tunnel(connection: Connection) -> None:
    """A proxy for CONNECT."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(1 << 16)
    host, _, port = request.split()[1].decode().partition(":")
    with socket.create_connection((host, int(port))) as target:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = threading.Thread(target=_copy, args=(target, connection), daemon=True)
        back.start()
        _copy(connection, target)
        back.join()


def _copy(source: Connection, target: Connection) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """RFC 9113 section 4.1."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: str, value: str) -> bytes:
    """A field that is not indexed (RFC 7541 section 6.2.2)."""
    return b"\0" + _text(name) + _text(value)


def repeated(name: str, value: str, count: int) -> bytes:
    """A field so many times, which takes a byte for each but the first (RFC 7541 sections 6.2.1 and 6.1)."""
    return b"\x40" + _text(name) + _text(value) + b"\xbe" * (count - 1)


def _text(text: str) -> bytes:
    rest = len(text) - 127
    if rest < 0:
        return bytes([len(text)]) + text.encode()
    length = [127]
    while rest >= 128:
        length.append(rest % 128 + 128)
        rest //= 128
    return bytes([*length, rest]) + text.encode()


def head(stream: int, fields: bytes = b"") -> bytes:
    """Status 200 and more fields, in as many frames as that takes."""
    block = b"\x88" + fields
    pieces = [block[start : start + 16384] for start in range(0, len(block), 16384)]
    frames = [frame(HEADERS if not index else CONTINUATION, 0, stream, piece) for index, piece in enumerate(pieces[:-1])]
    return b"".join(frames) + frame(CONTINUATION if frames else HEADERS, END_HEADERS, stream, pieces[-1])


def body(stream: int, content: bytes) -> list[bytes]:
    """Frames of as much as a frame can hold, the last of which ends the stream."""
    pieces = [content[start : start + 16384] for start in range(0, len(content), 16384)]
    return [frame(DATA, 0, stream, piece) for piece in pieces[:-1]] + [frame(DATA, END_STREAM, stream, pieces[-1])]


def http2(handle: Callable[[Connection, int], None]) -> Callable[[Connection], None]:
    """Calls `handle` with the stream of each request. It knows no more of HTTP/2 than that needs."""

    def serve(connection: Connection) -> None:
        connection.sendall(frame(SETTINGS, 0, 0))
        unread = _exactly(connection, b"", 24)[1]  # the preface
        while True:
            start, unread = _exactly(connection, unread, 9)
            length = int.from_bytes(start[:3], "big")
            _, unread = _exactly(connection, unread, length)
            if start[3] == HEADERS:
                handle(connection, int.from_bytes(start[5:], "big"))

    return serve


def _exactly(connection: Connection, unread: bytes, count: int) -> tuple[bytes, bytes]:
    while len(unread) < count:
        arrived = connection.recv(1 << 16)
        if not arrived:
            raise ConnectionError("closed")
        unread += arrived
    return unread[:count], unread[count:]
