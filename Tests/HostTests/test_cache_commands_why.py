"""`imageworker cache why` says what the next load does."""

from __future__ import annotations

import socket
import unittest
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
        used = [one for one in explained["stored"] if one["used"]]
        self.assertEqual((result.status, result.errors, len(used)), (1 - len(used), "", len(used)))
        text = run("why", self.cache, *self.OPTIONS, *arguments, "--text").output
        self.assertEqual(len(text.splitlines()), len(explained["steps"]))
        return dict(explained)

    def load(self, url: str, **params: Any) -> str:
        with Worker(self.cache, "--memory-limit", "0", *self.OPTIONS) as worker:
            return str(worker.call("load", url=url, **params)["result"]["cache"])

    def check(self, decision: str, url: str, *arguments: str, **params: Any) -> dict[str, Any]:
        explained = self.explain(url, *arguments)
        self.assertEqual(explained["decision"], decision)
        used = [one["fresh"] for one in explained["stored"] if one["used"]]
        how = "stale" if decision == "serve" and used == [False] else self.HOW[decision]
        self.assertEqual(self.load(url, **params), how)
        return explained

    def test_what_it_says_is_what_a_load_does(self) -> None:
        origin = self.origin()
        self.store("http://a.example/")
        kept, asked = origin.url("kept-0S"), origin.url("asked-1S")
        nothing = self.check("transfer", kept)
        self.assertEqual((nothing["stored"], nothing["request"]), ([], {}))
        self.assertIn("stored: nothing is stored under this key", nothing["steps"])
        fresh = self.check("serve", kept)
        tag = Picture("kept-0S", 1, "-").tag
        self.assertEqual(fresh["request"]["if-none-match"], tag)
        self.assertIn("fresh: Cache-Control: max-age=600", fresh["stored"][0]["reason"])
        self.assertEqual(fresh["directory"], str(self.cache / "default"))
        self.check("transfer", asked)
        stale = self.check("revalidate", asked)
        self.assertEqual(stale["request"]["if-none-match"], Picture("asked-1S", 1, "-").tag)
        self.assertIn("stale: Cache-Control: max-age=0", stale["stored"][0]["reason"])
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
        self.assertEqual((other["stored"][0]["differs"], other["stored"][0]["matches"]), (["x-language"], False))
        both = self.check("serve", url, "--header", "X-Language: en", headers=english)
        self.assertEqual(sorted(one["used"] for one in both["stored"]), [False, True])
        secret = self.check(
            "transfer", url, "--header", "X-Language: de", "--header", "Authorization: Bearer secret",
            headers={**german, "authorization": "Bearer secret"},
        )  # fmt: skip
        self.assertEqual((secret["credentials"], secret["storedForOthers"]), (["authorization"], 2))
        self.assertNotIn("secret", str(secret["steps"]))
        with_user = url.replace("http://", "http://u:p@")
        self.assertEqual(self.explain(with_user)["credentials"], ["user info of the URL"])

    def test_keys_variants_and_files(self) -> None:
        url = "http://a.example/1.png"
        self.store(url)
        with Worker(self.cache) as worker:
            self.assertIn("result", worker.call("load", url=url, transform={"width": 1, "format": "webp"}))
        self.assertEqual(self.explain(url + "?sid=7", "--key-ignore-query", "s*")["key"], url)
        self.assertEqual(self.explain("--key", url)["decision"], "serve")
        self.assertEqual(self.explain("http://b.example/", "--key", url)["decision"], "serve")
        plain = self.explain(url)
        self.assertEqual([one.get("refusal") for one in plain["stored"]], [None, "another transform"])
        made = self.explain(url, "--transform", '{"width": 1, "format": "webp"}')
        self.assertEqual([one["used"] for one in made["stored"]], [False, True])
        other = self.explain(url, "--transform", '{"width": 1, "format": "jpeg"}')
        self.assertEqual([one["used"] for one in other["stored"]], [True, False])
        self.assertIn("decision: then makes the variant from the original", other["steps"])
        (self.cache / "default" / plain["stored"][0]["file"]).unlink()
        self.assertEqual(self.explain(url)["decision"], "transfer")
        self.assertEqual([one["hasFile"] for one in self.explain(url)["stored"]], [False, True])

    def test_directories_are_looked_up_in_order(self) -> None:
        url = "http://a.example/1.png"
        self.store(url)
        shared, self.cache = self.cache, self.folder / "own"
        self.store("http://a.example/2.png")
        explained = self.explain(url, "--read-only-cache", str(shared))
        self.assertEqual((explained["directory"], explained["decision"]), (str(shared / "default"), "serve"))
        self.assertEqual(len(explained["directories"]), 2)

    def test_a_lease_is_named(self) -> None:
        worker = SendingWorker(self.cache, *self.OPTIONS)
        with socket.create_server(("127.0.0.1", 0)) as server, worker:
            worker.call("store", url="http://a.example/", data=PNG)
            url = f"http://127.0.0.1:{server.getsockname()[1]}/"
            worker.send("load", url=url)
            connection, _ = server.accept()
            with connection:
                self.assertTrue(connection.recv(1))
                self.assertEqual(self.explain(url)["lease"], {"pid": worker.process, "alive": True})
                self.assertNotIn("lease", self.explain(url, "--header", "x-other: 1"))
                worker.kill()
                self.assertEqual(self.explain(url)["lease"], {"pid": worker.process, "alive": False})


if __name__ == "__main__":
    unittest.main()
