"""A local nginx that serves the images of a benchmark as fast as it can."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import List, Tuple

from measuring import Skipped, program

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Origin"))

from images import Picture, image  # noqa: E402

CONFIGURATION = """
daemon off;
worker_rlimit_nofile 10000;
worker_processes 1;
error_log {root}/error.log warn;
pid {root}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
  log_format sent "$body_bytes_sent $uri";
  access_log {log};
  sendfile on;
  tcp_nopush on;
  keepalive_requests 10000000;
  keepalive_timeout 300s;
  open_file_cache max=20000;
  types {{ image/png png; }}
  default_type application/octet-stream;
  client_body_temp_path {root}/body;
  proxy_temp_path {root}/proxy;
  fastcgi_temp_path {root}/fastcgi;
  uwsgi_temp_path {root}/uwsgi;
  scgi_temp_path {root}/scgi;
  server {{
    {listen}
    {certificate}
    root {root}/files;
    # Fresh for longer than any run: what is in a cache is a hit, without asking again.
    add_header Cache-Control "max-age=86400";
    # Any name in this folder is a GIF of 43 bytes, which comes from memory.
    location /dot/ {{ empty_gif; }}
  }}
}}
"""


class Server:
    """nginx in the foreground, in a folder of its own, for as long as the `with` block lasts.

    With several ports it is as many origins, which all serve the same. With `tls` it speaks HTTP/2 over TLS, with a
    certificate that nobody has signed.
    """

    def __init__(self, root: Path, ports: int = 1, logs: bool = False, tls: bool = False) -> None:
        self.root = root
        self.scheme = "https" if tls else "http"
        self.files = root / "files"
        self.files.mkdir()
        self.ports = free_ports(ports)
        self.port = self.ports[0]
        kind = " ssl http2" if tls else ""
        listen = " ".join(f"listen 127.0.0.1:{port}{kind} backlog=4096;" for port in self.ports)
        self._log = root / "access.log"
        log = f"{self._log} sent" if logs else "off"
        certificate = make_certificate(root) if tls else ""
        text = CONFIGURATION.format(root=root, listen=listen, log=log, certificate=certificate)
        (root / "nginx.conf").write_text(text)

    def __enter__(self) -> Server:
        command = [program("nginx"), "-p", str(self.root), "-c", str(self.root / "nginx.conf")]
        command += ["-e", str(self.root / "error.log")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.01)
        self.__exit__()
        raise Skipped("nginx does not start: " + (self.root / "error.log").read_text().strip()[-300:])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def sent(self) -> List[Tuple[str, int]]:
        """The path of each response so far, and the bytes of its body that the server has written."""
        lines = (line.split(" ", 1) for line in self._log.read_text().splitlines())
        return [(path.lstrip("/"), int(count)) for count, path in lines]

    def add_images(self, count: int, size: int) -> List[str]:
        """PNGs of that size in folders of 256, each of its own bytes; returns their URLs."""
        urls: List[str] = []
        for number in range(count):
            folder = self.files / f"{number % 256:02x}"
            folder.mkdir(exist_ok=True)
            _, body = image("png", Picture(number, size=size))
            (folder / f"{number}.png").write_bytes(body.read(0, size))
            urls.append(self.url(f"{folder.name}/{number}.png"))
        return urls

    def add_sparse(self, name: str, size: int) -> str:
        """A file of zeros that takes no space; returns its URL."""
        path = self.files / name
        path.touch()
        os.truncate(path, size)
        return self.url(name)

    def url(self, path: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/{path}"


def make_certificate(root: Path) -> str:
    """A key and a certificate for it; returns the lines of nginx's configuration."""
    key, certificate = root / "key.pem", root / "certificate.pem"
    command = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return f"ssl_certificate {certificate}; ssl_certificate_key {key};"


def free_ports(count: int) -> List[int]:
    """Ports of the loopback interface that nobody listens on, all different."""
    with ExitStack() as probes:
        bound = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in bound:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in bound]
