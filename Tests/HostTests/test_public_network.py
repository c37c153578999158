"""`--network public` with a proxy: the worker refuses to start, or to be configured so."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest

from chaos_session import default_worker

PROXY = "http://127.0.0.1:1"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def run(*options: str, lines: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name.lower() not in PROXY_VARIABLES}
    with tempfile.TemporaryDirectory() as folder:
        command = [default_worker(), "--cache-dir", folder, *options]
        return subprocess.run(command, input=lines, capture_output=True, text=True, env={**plain, **environment}, timeout=60)


class PublicNetwork(unittest.TestCase):
    def test_a_proxy_is_refused_at_start(self) -> None:
        for scheme in ("http", "https", "socks4", "socks4a", "socks5", "socks5h"):
            with self.subTest(scheme):
                ended = run("--network", "public", "--proxy", f"{scheme}://127.0.0.1:1")
                self.assertEqual(ended.returncode, 64)
                self.assertRegex(ended.stderr, r"\Aimageworker: network public cannot be combined with a proxy, .*\n\Z")

    def test_a_proxy_of_the_environment_is_refused_at_start(self) -> None:
        for variable in ("http_proxy", "https_proxy", "all_proxy"):
            with self.subTest(variable):
                ended = run("--network", "public", **{variable: PROXY})
                self.assertEqual(ended.returncode, 64)
                self.assertIn(variable, ended.stderr)

    def test_an_empty_proxy_keeps_that_of_the_environment_out(self) -> None:
        load = json.dumps({"id": 1, "method": "load", "params": {"url": "http://127.0.0.1:1/"}})
        ended = run("--network", "public", "--proxy", "", lines=load + "\n", http_proxy=PROXY)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads(ended.stdout)["error"]["data"]["kind"], "blockedAddress")

    def test_configure_does_not_make_a_worker_with_a_proxy_public(self) -> None:
        requests = [
            {"id": 1, "method": "configure", "params": {"network": "public"}},
            {"id": 2, "method": "configure", "params": {}},
        ]
        ended = run("--proxy", PROXY, lines="".join(json.dumps(request) + "\n" for request in requests))
        refusal, options = (json.loads(line) for line in ended.stdout.splitlines())
        self.assertEqual((refusal["error"]["code"], refusal["error"]["data"]["member"]), (-32602, "network"))
        self.assertEqual(options["result"]["network"], "any")


if __name__ == "__main__":
    unittest.main()
