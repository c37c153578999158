"""`imageworker cache why` says what the next load does."""

from __future__ import annotations

import socket
import unittest
from pathlib import Path
from typing import Any

from cache_commands import PNG, CommandsTest, SendingWorker, run
from kills_origin import Picture
from test_cache_disk import Worker


class Explaining(CommandsTest):
    """`why` says what the next load does."""

    OPTIONS = ["--user-agent", "test", "--header", "x-always: 1"]
    HOW = {"serve": "disk", "serveThenRevalidate": "stale", "revalidate": "revalidated", "transfer": "miss"}

    def explain(self, *arguments: str) -> dict[str, Any]:
        result = run("why", self.cache, *self.OPTIONS, *arguments)
        [explained] = result.objects
        sends_all = explained["decision"] in ("transfer", "notCached")
        self.assertEqual((result.status, result.errors), (int(sends_all), ""))
        text = run("why", self.cache, *self.OPTIONS, *arguments, "--text").output
        self.assertRegex(text, rf"decision +{explained['decision']}\n")
        return dict(explained)

    def load(self, url: str, **params: Any) -> str:
        with Worker(self.cache, "--memory-limit", "0", *self.OPTIONS) as worker:
            return str(worker.call("load", url=url, **params)["result"]["cache"])

    def check(self, decision: str, url: str, *arguments: str, **params: Any) -> dict[str, Any]:
        explained = self.explain(url, *arguments)
        self.assertEqual(explained["decision"], decision)
        how = "stale" if decision == "serve" and not explained["fresh"] else self.HOW[decision]
        self.assertEqual(self.load(url, **params), how)
        return explained

    def test_what_it_says_is_what_a_load_does(self) -> None:
        origin = self.origin()
        self.store("http://a.example/")
        kept, asked = origin.url("kept-0S"), origin.url("asked-1S")
        nothing = self.check("transfer", kept)
        self.assertEqual((nothing["disk"], nothing["reason"]), (False, "not stored"))
        fresh = self.check("serve", kept)
        self.assertEqual(fresh["etag"], Picture("kept-0S", 1, "-").tag)
        self.assertIn("fresh: Cache-Control: max-age=600", fresh["reason"])
        self.assertEqual(fresh["directory"], str(self.cache))
        self.check("transfer", asked)
        stale = self.check("revalidate", asked)
        self.assertEqual(stale["etag"], Picture("asked-1S", 1, "-").tag)
        self.assertIn("stale: Cache-Control: max-age=0", stale["reason"])
        self.check("revalidate", kept, "--cache", "no-cache", cache="no-cache")
        self.check("transfer", kept, "--cache", "reload", cache="reload")
        self.check("serve", asked, "--cache", "force-cache", cache="force-cache")
        self.assertEqual(self.explain(kept, "--max-age", "0")["decision"], "revalidate")
        self.assertEqual(self.explain(origin.url("kept-9S"), "--cache", "only-if-cached")["decision"], "notCached")

    def test_vary_and_credentials(self) -> None:
        origin = self.origin()
        self.store("http://a.example/")
        url = origin.url("varied-0S")
        german, english = {"x-language": "de"}, {"x-language": "en"}
        self.check("transfer", url, "--header", "X-Language: de", headers=german)
        self.check("serve", url, "--header", "X-Language: de", headers=german)
        other = self.check("transfer", url, "--header", "X-Language: en", headers=english)
        self.assertEqual(other["varying"], ["x-language"])
        both = self.check("serve", url, "--header", "X-Language: en", headers=english)
        self.assertEqual(both["variants"], 2)
        self.check(
            "transfer", url, "--header", "X-Language: de", "--header", "Authorization: Bearer secret",
            headers={**german, "authorization": "Bearer secret"},
        )  # fmt: skip

    def test_keys_variants_and_files(self) -> None:
        url = "http://a.example/1.png"
        self.store(url)
        with Worker(self.cache) as worker:
            self.assertIn("result", worker.call("load", url=url, transform={"width": 1, "format": "webp"}))
        self.assertEqual(self.explain(url + "?sid=7", "--key-ignore-query", "s*")["key"], url)
        self.assertEqual(self.explain("--key", url)["decision"], "serve")
        self.assertEqual(self.explain("http://b.example/", "--key", url)["decision"], "serve")
        plain = self.explain(url)
        [made] = plain["transforms"]
        self.assertIn("webp", made)
        variant = self.explain(url, "--transform", '{"width": 1, "format": "webp"}')
        self.assertEqual(variant["decision"], "serve")
        self.assertNotEqual(variant["path"], plain["path"])
        Path(plain["path"]).unlink()
        self.assertEqual(self.explain(url)["decision"], "transfer")

    def test_directories_are_looked_up_in_order(self) -> None:
        url = "http://a.example/1.png"
        self.store(url)
        shared, self.cache = self.cache, self.folder / "own"
        self.store("http://a.example/2.png")
        explained = self.explain(url, "--read-only-cache", str(shared))
        self.assertEqual((explained["directory"], explained["decision"]), (str(shared), "serve"))

    def test_a_lease_is_named(self) -> None:
        worker = SendingWorker(self.cache, *self.OPTIONS)
        with socket.create_server(("127.0.0.1", 0)) as server, worker:
            worker.call("store", url="http://a.example/", data=PNG)
            url = f"http://127.0.0.1:{server.getsockname()[1]}/"
            worker.send("load", url=url)
            connection, _ = server.accept()
            with connection:
                self.assertTrue(connection.recv(1))
                self.assertEqual(self.explain(url)["lease"], {"pid": worker.process})
                self.assertNotIn("lease", self.explain(url, "--header", "x-other: 1"))
                worker.kill()
                self.assertNotIn("lease", self.explain(url))


if __name__ == "__main__":
    unittest.main()
