"""HTTP/2 over TLS for one host of the small internet: nginx in front of it, which asks it over HTTP/1.1."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import List

STREAMS = 100
"""SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113, section 6.5.2)."""
CONFIGURATION = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 4096;
error_log {folder}/error.log warn;
pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  keepalive_requests 10000000;
  http2_max_concurrent_streams {streams};
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream host {{ server {address}:80; keepalive 1024; keepalive_requests 10000000; }}
  server {{
    listen {address}:443 ssl http2 backlog=4096;
    ssl_certificate {folder}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    location / {{ proxy_pass http://host; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


class Missing(Exception):
    """A program that HTTP/2 needs is not installed."""


class HTTP2Front:
    """A running nginx in the namespace that `prefix` enters. Its certificate is self-signed."""

    def __init__(self, prefix: List[str], folder: Path, address: str) -> None:
        nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
        if nginx is None or shutil.which("openssl") is None:
            raise Missing("nginx or openssl is not installed")
        folder.mkdir()
        (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, address=address, streams=STREAMS))
        certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=small internet"]
        certificate += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
        subprocess.run(certificate, check=True, capture_output=True)
        command = [*prefix, nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # nginx writes its pid file after it has opened its listening sockets.
        for _ in range(1000):
            if (folder / "nginx.pid").exists():
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        self.end()
        raise Missing("nginx does not start: " + (folder / "error.log").read_text().strip()[-300:])

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
