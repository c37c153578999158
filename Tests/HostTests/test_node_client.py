"""examples/node/imageworker.mjs: node_client.test.mjs, node_client_faults.test.mjs, and what takes a host of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from origin_process import PATIENCE, Origin
from package import ROOT
from processes import Watched, children

CLIENT = (ROOT / "examples" / "node" / "imageworker.mjs").as_uri()

ABANDONED = """
const [client, cache, first, url, farewell] = process.argv.slice(1);
const { ImageWorker } = await import(client);
const worker = new ImageWorker({ cacheDir: cache });
await worker.load(first, { transform: { width: 8 } }); // So that there are decoders.
worker.load(url, { onEvent: () => console.log(worker.pid) }).catch(() => {});
process.stdin.once("data", () => {
  if (farewell === "throw") throw new Error("as a host may");
  process.exit(0);
});
"""

WITHOUT_DESCRIPTORS = """
const [client, cache, url] = process.argv.slice(1);
const { ImageWorker } = await import(client);
const { closeSync, openSync } = await import("node:fs");
let ended;
const end = new Promise((done) => (ended = done));
const worker = new ImageWorker({ cacheDir: cache, onExit: ended });
await worker.load(url);
const taken = [];
try {
  for (;;) taken.push(openSync("/dev/null"));
} catch {
  process.kill(worker.pid, "SIGKILL");
}
const alive = setInterval(() => {}, 1000);
await end;
const refused = await worker.load(url).catch((error) => error);
for (const descriptor of taken) closeSync(descriptor);
console.log(refused.kind, refused.retryable, /EMFILE/.test(refused.message), (await worker.load(url)).width);
clearInterval(alive);
"""

INTERRUPTED = """
const [client, cache, url] = process.argv.slice(1);
const { ImageWorker } = await import(client);
const worker = new ImageWorker({ cacheDir: cache });
process.on("SIGINT", () => console.log("finishing"));
console.log((await worker.load(url)).width);
await worker.close();
"""


def host(script: str, *arguments: str) -> list[str]:
    return ["node", "--input-type=module", "--eval", script, CLIENT, *arguments]


@unittest.skipIf(shutil.which("node") is None, "there is no node here")
class NodeClient(unittest.TestCase):
    def test_the_client(self) -> None:
        command = ["node", "--test", *map(str, Path(__file__).parent.glob("node_client*.test.mjs"))]
        pipe = subprocess.PIPE
        with Origin() as origin:
            environment = {**os.environ, "ORIGIN": origin.url, "ORIGIN_CONTROL": origin.control}
            with subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True) as run:
                try:
                    output, _ = run.communicate(timeout=10 * PATIENCE)
                except subprocess.TimeoutExpired:
                    run.terminate()  # It says then which tests have ended.
                    output, _ = run.communicate()
        self.assertEqual(run.returncode, 0, output)

    def test_a_script_ends_by_itself_while_its_worker_is_idle(self) -> None:
        script = """
            const [client, cache, url] = process.argv.slice(1);
            const { ImageWorker } = await import(client);
            const worker = new ImageWorker({ cacheDir: cache });
            console.log(worker.pid, (await worker.load(url)).width);
        """
        with tempfile.TemporaryDirectory() as cache, Origin() as origin:
            command = host(script, cache, f"{origin.url}/image/1.png")
            run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        pid, width = run.stdout.split()
        self.assertEqual((run.returncode, width), (0, "32"))
        with contextlib.suppress(ProcessLookupError), Watched(int(pid)) as worker:  # It may be gone already.
            self.assertTrue(worker.ends())

    def test_a_host_that_ends_without_closing_leaves_no_process(self) -> None:
        for farewell in ("exit", "throw", "kill"):
            with contextlib.ExitStack() as exits, self.subTest(farewell=farewell):
                cache = exits.enter_context(tempfile.TemporaryDirectory())
                origin = exits.enter_context(Origin())
                urls = [f"{origin.url}/image/1.png", f"{origin.url}/image/1.png?hold=never"]
                pipe = subprocess.PIPE
                command = host(ABANDONED, cache, *urls, farewell)
                process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
                assert process.stdin is not None and process.stdout is not None
                worker = int(process.stdout.readline())
                family = [exits.enter_context(Watched(pid)) for pid in (worker, *children(worker))]
                self.assertGreater(len(family), 1, "a worker and its decoders")
                if farewell == "kill":
                    process.kill()
                else:
                    process.stdin.write(b"go\n")
                process.stdin.close()
                process.wait()
                process.stdout.close()
                for member in family:
                    self.assertTrue(member.ends())

    def test_a_script_ends_by_itself_after_a_call_that_cannot_be_serialised(self) -> None:
        script = """
            const [client, cache] = process.argv.slice(1);
            const { ImageWorker } = await import(client);
            const worker = new ImageWorker({ cacheDir: cache });
            await worker.load("data:,", { retries: 1n }).catch((error) => console.log(error.name));
        """
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run(host(script, cache), stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual((run.returncode, run.stdout), (0, "TypeError\n"))

    def test_a_host_without_free_descriptors_starts_the_worker_again_when_it_has_some(self) -> None:
        with tempfile.TemporaryDirectory() as cache, Origin() as origin:
            run = subprocess.run(
                host(WITHOUT_DESCRIPTORS, cache, f"{origin.url}/image/1.png"),
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
            )
        self.assertEqual((run.returncode, run.stdout), (0, "workerExited true true 32\n"))

    def test_a_host_that_is_interrupted_may_finish_what_is_under_way(self) -> None:
        with tempfile.TemporaryDirectory() as cache, Origin() as origin:
            command = host(INTERRUPTED, cache, f"{origin.url}/image/1.png?hold=gate")
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
            assert process.stdout is not None
            origin.command({"do": "await", "gate": "gate", "held": 1})
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.stdout.readline(), "finishing\n")
            origin.command({"do": "release", "gate": "gate"})
            output, _ = process.communicate()
        self.assertEqual((process.returncode, output), (0, "32\n"))


if __name__ == "__main__":
    unittest.main()
