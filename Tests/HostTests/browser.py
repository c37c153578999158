"""A headless Chromium, driven over a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Any, Optional

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0


class Browser:
    """One browser with one tab. Reading from and writing to descriptors 3 and 4 is Chromium's own arrangement."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self._profile = tempfile.mkdtemp()
        to_browser, self._output = os.pipe()
        self._input, from_browser = os.pipe()

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--hide-scrollbars", "--window-size=1280,900", f"--user-data-dir={self._profile}", "--remote-debugging-pipe"]
        # Descriptors 3 and 4 cannot be chosen otherwise without running code after the fork.
        script = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", CHROMIUM, *options, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._last_id = 0
        self._has_loaded = False
        self._session: Optional[str] = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        os.close(self._output)
        self._process.terminate()
        self._process.wait()
        os.close(self._input)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, url: str) -> None:
        """Comes back when the page and its scripts have run."""
        self._has_loaded = False
        self.send("Page.navigate", url=url)
        deadline = time.monotonic() + PATIENCE
        while not self._has_loaded:
            self._receive(deadline, "Page.navigate")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, waited for if it is a promise."""
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def send(self, method: str, **params: Any) -> Any:
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._output, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") == self._last_id:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self, deadline: float, method: str) -> Any:
        while b"\0" not in self._buffer:
            readable, _, _ = select.select([self._input], [], [], max(deadline - time.monotonic(), 0))
            assert readable, f"the browser did not answer {method}"
            piece = os.read(self._input, 1 << 16)
            assert piece, "the browser has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        if message.get("method") == "Page.loadEventFired":
            self._has_loaded = True
        return message
