"""examples/node/imageworker.mjs against the built worker: node_client.test.mjs, and what happens after the host."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from origin_process import Origin
from package import ROOT
from processes import Watched, children

ABANDONED = """
const [client, cache, first, url, farewell] = process.argv.slice(1);
const { ImageWorker } = await import(client);
const worker = new ImageWorker({ options: ["--cache-dir", cache] });
await worker.load(first, { transform: { width: 8 } }); // So that there are decoders.
worker.load(url, { onEvent: () => console.log(worker.pid) }).catch(() => {});
process.stdin.once("data", () => {
  if (farewell === "throw") throw new Error("as a host may");
  process.exit(0);
});
"""


@unittest.skipIf(shutil.which("node") is None, "there is no node here")
class NodeClient(unittest.TestCase):
    def test_the_client(self) -> None:
        with Origin() as origin:
            run = subprocess.run(
                ["node", "--test", str(Path(__file__).with_name("node_client.test.mjs"))],
                env={**os.environ, "ORIGIN": origin.url, "ORIGIN_CONTROL": origin.control},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_a_script_ends_by_itself_while_its_worker_is_idle(self) -> None:
        script = """
            const [client, cache, url] = process.argv.slice(1);
            const { ImageWorker } = await import(client);
            const worker = new ImageWorker({ options: ["--cache-dir", cache] });
            console.log(worker.pid, (await worker.load(url)).width);
        """
        client = (ROOT / "examples" / "node" / "imageworker.mjs").as_uri()
        with tempfile.TemporaryDirectory() as cache, Origin() as origin:
            command = ["node", "--input-type=module", "--eval", script, client, cache, f"{origin.url}/image/1.png"]
            host = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            output, _ = host.communicate()
        pid, width = output.split()
        self.assertEqual((host.returncode, width), (0, "32"))
        with contextlib.suppress(ProcessLookupError), Watched(int(pid)) as worker:  # It may be gone already.
            self.assertTrue(worker.ends())

    def test_a_host_that_ends_without_closing_leaves_no_process(self) -> None:
        client = (ROOT / "examples" / "node" / "imageworker.mjs").as_uri()
        for farewell in ("exit", "throw", "kill"):
            with contextlib.ExitStack() as exits, self.subTest(farewell=farewell):
                cache = exits.enter_context(tempfile.TemporaryDirectory())
                origin = exits.enter_context(Origin())
                urls = [f"{origin.url}/image/1.png", f"{origin.url}/image/1.png?hold=never"]
                script = ["node", "--input-type=module", "--eval", ABANDONED, client, cache, *urls, farewell]
                pipe = subprocess.PIPE
                host = subprocess.Popen(script, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
                assert host.stdin is not None and host.stdout is not None
                worker = int(host.stdout.readline())
                family = [exits.enter_context(Watched(pid)) for pid in (worker, *children(worker))]
                self.assertGreater(len(family), 1, "a worker and its decoders")
                if farewell == "kill":
                    host.kill()
                else:
                    host.stdin.write(b"go\n")
                host.stdin.close()
                host.wait()
                host.stdout.close()
                for process in family:
                    self.assertTrue(process.ends())


if __name__ == "__main__":
    unittest.main()
