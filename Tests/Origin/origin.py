#!/usr/bin/env python3
"""An HTTP/1.1 origin on the loopback interface that misbehaves on command. README.md has the menu.

It prints one line of JSON when it is ready, takes commands as lines of JSON on its standard input, and ends when that
ends, so that it never outlives whoever started it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional

from connection import Connection
from control import perform, serve_control
from ledger import Ledger


def make_certificate(folder: Path, name: str) -> ssl.SSLContext:
    """A certificate that vouches for itself, so that it is its own authority, in `folder/ca.pem`."""
    kind = "IP" if name[-1].isdigit() else "DNS"
    command = "openssl req -x509 -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes".split()
    command += ["-keyout", "key.pem", "-out", "ca.pem"]
    command += ["-subj", f"/CN={name}", "-addext", f"subjectAltName={kind}:{name}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="the (first) port; 0, the default, takes a free one")
    parser.add_argument("--origins", type=int, default=1, help="listen on that many ports, which share everything")
    parser.add_argument("--tls", action="store_true", help="speak TLS with a certificate made for the occasion")
    parser.add_argument("--tls-name", default="127.0.0.1", help="whom the certificate names (default: %(default)s)")
    return parser.parse_args()


def read_commands(loop: asyncio.AbstractEventLoop, commands: asyncio.Queue[Optional[bytes]]) -> None:
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(commands.put_nowait, line)
    loop.call_soon_threadsafe(commands.put_nowait, None)


def say(line: Dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


async def obey(ledger: Ledger, line: bytes) -> None:
    try:
        command = json.loads(line)
        result = await perform(ledger, command)
    except ValueError as error:
        command, result = {}, {"error": f"{error}"}
    say({"id": command["id"], **result} if "id" in command else result)


async def serve(options: argparse.Namespace, context: Optional[ssl.SSLContext], folder: str) -> None:
    loop = asyncio.get_running_loop()
    ledger = Ledger()
    servers: List[asyncio.AbstractServer] = []
    ports: List[int] = []
    for index in range(options.origins):
        port = options.port + index if options.port else 0
        server = await loop.create_server(lambda: Connection(ledger), options.host, port, ssl=context, backlog=4096)
        servers.append(server)
        ports.append(server.sockets[0].getsockname()[1])
    control = await asyncio.start_server(lambda r, w: serve_control(ledger, r, w), options.host, 0)
    ready: Dict[str, Any] = {"port": ports[0], "control": control.sockets[0].getsockname()[1]}
    if len(ports) > 1:
        ready["ports"] = ports
    if context is not None:
        ready["ca"] = str(Path(folder) / "ca.pem")
    commands: asyncio.Queue[Optional[bytes]] = asyncio.Queue()
    threading.Thread(target=read_commands, args=(loop, commands), daemon=True).start()
    say(ready)
    obeying: set[asyncio.Task[None]] = set()
    while (line := await commands.get()) is not None:
        task = loop.create_task(obey(ledger, line))
        obeying.add(task)
        task.add_done_callback(obeying.discard)


def main() -> None:
    options = arguments()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="origin-")) if options.tls else ""
        context = make_certificate(Path(folder), options.tls_name) if options.tls else None
        try:
            asyncio.run(serve(options, context, folder))
        except (KeyboardInterrupt, BrokenPipeError):
            pass


if __name__ == "__main__":
    main()
