// examples/node/imageworker.mjs with fake workers that misbehave. test_node_client.py runs this.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, closeSync, openSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";

import { IncompatibleWorkerError, ImageWorker, InternalError, NetworkError, RequestError, TimeoutError, WorkerExited, protocolVersion } from "../../examples/node/imageworker.mjs";

const client = new URL("../../examples/node/imageworker.mjs", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "imageworker-"));
after(() => rmSync(folder, { recursive: true }));

/** The path of a script. */
function script(name, text) {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o755 });
  return path;
}

/** A worker that does for each request what `serve(request, say)` does; `say` writes a line. It answers `initialize` properly. */
function worker(name, serve, settings = {}, greeting = { result: { protocolVersion } }) {
  const text = `#!${process.execPath}
    const say = (line) => process.stdout.write(line + "\\n");
    const serve = ${serve};
    require("node:readline").createInterface(process.stdin).on("line", (line) => {
      const request = JSON.parse(line);
      if (request.method === "initialize") say(JSON.stringify({ id: request.id, ...${JSON.stringify(greeting)} }));
      else serve(request, say);
    });`;
  return new ImageWorker({ binary: script(name, text), ...settings });
}

/** Dies at once, and leaves a trace of it. */
function mortal(name) {
  const starts = join(folder, `${name}-starts`);
  const binary = script(name, `#!/bin/sh\necho started >> ${starts}\nexit 1\n`);
  return { binary, starts: () => readFileSync(starts, "utf8").split("\n").length - 1 };
}

test("the pixels of an aborted call are released", async () => {
  const fake = worker("pixels", (request, say) => {
    globalThis.told ??= [];
    told.push(request.method);
    const { method, id, params } = request;
    // The answer is on its way when the call is aborted.
    if (method === "cancel") say(JSON.stringify({ id: params.id, result: { pixels: { path: "/dev/shm/region" } } }));
    if (method === "told") say(JSON.stringify({ id, result: told }));
  });
  const aborter = new AbortController();
  const loading = fake.load("data:,", { deliver: "pixels", signal: aborter.signal });
  aborter.abort();
  await assert.rejects(loading, { name: "AbortError" });
  await fake.call("told");
  assert.deepEqual(await fake.call("told"), ["load", "cancel", "told", "release", "told"]);
  await fake.close();
});

test("calls of a worker that does not answer end after their deadline", { timeout: 60_000 }, async () => {
  const serve = (request, say) => request.params.url !== "data:,never" && say(JSON.stringify({ id: request.id, result: {} }));
  const stopped = worker("stopped", serve, { deadlineMs: 500 });
  const resumed = worker("resumed", serve);
  const writing = worker("writing", (request, say) => {
    setInterval(() => say(JSON.stringify({ method: "progress", params: { id: request.id } })), 500);
    setTimeout(() => say(JSON.stringify({ id: request.id, result: {} })), 15_000);
  });
  await Promise.all([stopped, resumed].map(({ ready }) => ready));
  await resumed.configure({ deadlineMs: 1000 });
  for (const { pid } of [stopped, resumed]) process.kill(pid, "SIGSTOP");
  const image = { data: Buffer.from("a") };
  const late = [stopped.load("data:,"), stopped.probe("data:,", { deadlineMs: 5 }), stopped.process({ ...image, deadlineMs: 1 }), stopped.process(image)];
  const unlimited = [stopped.load("data:,", { deadlineMs: 0 }), stopped.stats()];
  const others = [resumed.load("data:,"), writing.load("data:,", { deadlineMs: 1 })];
  const hanging = resumed.load("data:,never");
  await new Promise((done) => setTimeout(done, 9500));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000); // Neither runs, this program and that worker.
  process.kill(resumed.pid, "SIGCONT");
  for (const end of await Promise.allSettled([...late, hanging])) {
    assert.ok(end.reason instanceof TimeoutError);
    assert.deepEqual([end.reason.kind, end.reason.phase, end.reason.retryable], ["timeout", "client", false]);
  }
  process.kill(stopped.pid, "SIGCONT");
  await Promise.all([...unlimited, ...others]);
  assert.deepEqual(await stopped.process(image), {});
  await Promise.all([stopped, resumed, writing].map((each) => each.close({ graceMs: 100 })));
});

test("calls and close end although another process holds the pipes of an ended worker", async () => {
  const held = (rest) => script("holder", `#!/bin/sh\nsleep 1000 & echo $! >> ${folder}/holders\n${rest}\n`);
  try {
    const gone = new ImageWorker({ binary: held("exit 7"), maxRestarts: 0 });
    await assert.rejects(gone.call("stats"), ({ kind, data }) => kind === "workerExited" && data.exitStatus === 7);
    await gone.close();
    const idle = new ImageWorker({ binary: held("exec cat") });
    await idle.close();
  } finally {
    for (const id of readFileSync(join(folder, "holders"), "utf8").trim().split("\n")) process.kill(Number(id));
  }
});

test("a call that cannot be made does not keep the program from ending", async () => {
  const fake = worker("unasked", () => {});
  await assert.rejects(fake.load(Object.create(null)), TypeError);
  await fake.close();
  const text = `import { ImageWorker } from ${JSON.stringify(client)};
    new ImageWorker({ binary: ${JSON.stringify(join(folder, "unasked"))} }).load(Object.create(null)).catch(() => {});`;
  const program = script("unasked.mjs", text);
  assert.equal(spawnSync(process.execPath, [program]).status, 0);
});

test("a line that is not a message is logged, and the next lines are read", async () => {
  const log = [];
  const lines = ({ id, params }, say) => {
    for (const line of ["this is no JSON", "null", "[]", "5", JSON.stringify({ id, result: params })]) say(line);
  };
  const fake = worker("garbage", lines, { onLog: (line) => log.push(line) });
  assert.deepEqual(await fake.call("echo", { a: 1 }), { a: 1 });
  assert.equal(log.length, 4);
  assert.match(log[0], /this is no JSON/);
  await fake.close();
});

test("an answer that cannot be read ends its call", async () => {
  const fake = worker("halves", ({ id, params }, say) => say(JSON.stringify({ id, ...params })));
  await assert.rejects(fake.call("a"), { kind: "internal" });
  await assert.rejects(fake.call("a", { error: "text" }), { kind: "internal" });
  const errors = [
    [{ code: 2001, message: "m", data: null }, NetworkError, "internal"],
    [{ code: 2099, message: "m", data: { kind: "tooNew" } }, NetworkError, "tooNew"],
    [{ code: 9001, message: "m", data: { kind: "toString" } }, RequestError, "toString"],
  ];
  for (const [answer, errorClass, kind] of errors) {
    const error = await fake.call("a", { error: answer }).catch((error) => error);
    assert.deepEqual([error.constructor, error.kind, error.message], [errorClass, kind, "m"]);
  }
  await assert.rejects(fake.call("a"), InternalError);
  assert.equal(await fake.call("a", { error: null, result: 5 }), 5);
  await fake.close();
});

test("a worker that has closed a pipe is killed", async () => {
  // What closes its output is killed for it, perhaps before it can say anything more.
  for (const end of ["echo >&2 mute; exec 1>&-", "echo '{\"id\":1,\"result\":1}'; exec 0<&-; echo >&2 deaf"]) {
    const binary = script("closes", `#!/bin/sh\nread line; read line\n${end}\nexec sleep 1000\n`);
    let closed;
    const isClosed = new Promise((done) => (closed = done));
    const fake = new ImageWorker({ binary, onLog: closed });
    const calls = [fake.call("a").catch((error) => error)];
    const alive = setInterval(() => {}, 1000); // A worker without calls does not keep the program going.
    await isClosed;
    clearInterval(alive);
    calls.push(fake.call("b").catch((error) => error));
    assert.ok((await Promise.all(calls)).at(-1) instanceof WorkerExited);
    await fake.close();
  }
});

test("after the longest pause one call starts the worker again", { timeout: 60_000 }, async () => {
  const { binary, starts } = mortal("tried-again");
  const fake = new ImageWorker({ binary, maxRestarts: 1, longestPauseMs: 1 });
  do {
    await assert.rejects(fake.call("a"), { kind: "workerExited", retryable: true });
    await new Promise(setImmediate);
  } while (starts() < 5);
});

test("an exit status that a restart would repeat is not retryable", async () => {
  for (const [status, maxRestarts] of [[64, 5], [66, 5], [73, 5], [1, 0]]) {
    const ends = [];
    const binary = script(`ends-${status}`, `#!/bin/sh\nexit ${status}\n`);
    const fake = new ImageWorker({ binary, maxRestarts, longestPauseMs: 1, onExit: (end) => ends.push(end.data.exitStatus) });
    for (let n = 0; n < 3; n++) await assert.rejects(fake.call("a"), { kind: "workerExited", retryable: false });
    assert.deepEqual(ends, [status]);
  }
});

test("a call that is aborted while it waits for a restart leaves nothing behind", async () => {
  const { binary, starts } = mortal("aborted");
  const fake = new ImageWorker({ binary, longestPauseMs: 60_000, maxRestarts: 100 });
  for (let n = 0; n < 3; n++) await assert.rejects(fake.call("a"), WorkerExited);
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const [aborter, other] = [new AbortController(), new AbortController()];
  const calls = Array.from({ length: 20 }, () => fake.call("a", {}, { signal: aborter.signal }));
  calls.push(fake.call("a", {}, { signal: other.signal }));
  const outcomes = Promise.allSettled(calls);
  assert.equal(timers(), before + 1, "the pause holds the program while a call waits for it");
  aborter.abort(new Error("left"));
  assert.equal(timers(), before + 1);
  other.abort(new Error("left"));
  assert.equal(timers(), before);
  for (const { reason } of await outcomes) assert.match(reason.message, /left/);
  assert.deepEqual(getEventListeners(aborter.signal, "abort"), []);
  assert.equal(starts(), 3);
});

test("close ends the wait for a restart", async () => {
  const { binary } = mortal("closed");
  const fake = new ImageWorker({ binary, longestPauseMs: 60_000, maxRestarts: 100 });
  for (let n = 0; n < 3; n++) await assert.rejects(fake.call("a"), WorkerExited);
  const waiting = assert.rejects(fake.call("a"), { kind: "closed", retryable: false });
  await fake.close();
  await waiting;
});

test("calls that wait for a restart are sent in their order", async () => {
  const fake = worker("ordered", ({ id, method, params }, say) => {
    if (method === "die") process.exit(1);
    globalThis.seen = [...(globalThis.seen ?? []), params.n];
    say(JSON.stringify({ id, result: seen }));
  });
  await assert.rejects(fake.call("die"), WorkerExited);
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  assert.deepEqual((await Promise.all(numbers.map((n) => fake.call("a", { n })))).at(-1), numbers);
  await fake.close();
});

test("close takes any grace time", async () => {
  const warnings = [];
  const warn = (warning) => warnings.push(warning.name);
  process.on("warning", warn);
  const fake = worker("patient", () => {});
  await fake.close({ graceMs: Infinity });
  process.off("warning", warn);
  assert.deepEqual(warnings, []);
});

test("the requests of one turn are not joined into one string", async (context) => {
  const write = context.mock.method(Socket.prototype, "write");
  const fake = new ImageWorker({ binary: script("eats", "#!/bin/sh\nexec cat > /dev/null\n") });
  for (let n = 0; n < 100; n++) fake.notify("store", { data: "a".repeat(1000) });
  await fake.close();
  const stores = write.mock.calls.map((call) => String(call.arguments[0])).filter((text) => text.includes('"store"'));
  assert.equal(stores.length, 100);
});

test("a binary that is being written is retried", async () => {
  const binary = script("busy", "#!/bin/sh\nexit 1\n");
  copyFileSync(process.execPath, binary);
  const written = openSync(binary, "r+");
  try {
    const fake = new ImageWorker({ binary, maxRestarts: 1, longestPauseMs: 1 });
    await assert.rejects(fake.load("data:,"), { kind: "workerExited", retryable: true });
    await fake.close();
  } finally {
    closeSync(written);
  }
});

test("a binary that is missing or not executable is not retried", async () => {
  const words = { [join(folder, "missing")]: "no such file", [script("closed", "")]: "permission denied" };
  chmodSync(join(folder, "closed"), 0o644);
  for (const [binary, reason] of Object.entries(words)) {
    const fake = new ImageWorker({ binary, longestPauseMs: 1 });
    for (let n = 0; n < 2; n++) {
      const error = await fake.load("data:,").catch((error) => error);
      assert.equal(error.message, `the worker did not start: ${binary}: ${reason}`);
      assert.deepEqual([error.kind, error.retryable, error.data.exitStatus], ["workerExited", false, null]);
    }
    await fake.close();
  }
});

test("a binary that was removed after a start is retried", async () => {
  const { binary, starts } = mortal("replaced");
  const fake = new ImageWorker({ binary, maxRestarts: 100, longestPauseMs: 1 });
  await assert.rejects(fake.load("data:,"), { retryable: true });
  rmSync(binary);
  const missing = await fake.load("data:,").catch((error) => error);
  assert.deepEqual([missing.retryable, missing.data.exitStatus], [true, null]);
  mortal("replaced");
  await assert.rejects(fake.load("data:,"), { retryable: true });
  assert.equal(starts(), 2);
  await fake.close();
});

test("an answer that is not JSON ends its call", async () => {
  const fake = worker("garbled", ({ id }, say) => say(`{"jsonrpc":"2.0","id":${id},"result":{"data":"AAA`));
  await assert.rejects(fake.load("data:,"), { kind: "internal", retryable: false });
  await fake.close();
});

test("findWorker looks in the order that its document tells", async () => {
  const tree = join(folder, "tree");
  const home = join(tree, "examples", "node");
  const own = join(home, "bin", "imageworker");
  const built = join(tree, ".build", "release", "imageworker");
  const onPath = join(tree, "path", "imageworker");
  mkdirSync(home, { recursive: true });
  mkdirSync(join(tree, "directory", "imageworker"), { recursive: true });
  copyFileSync(client, join(home, "imageworker.mjs"));
  const { findWorker } = await import(join(home, "imageworker.mjs"));
  const { PATH, IMAGEWORKER } = process.env;
  delete process.env.IMAGEWORKER;
  process.env.PATH = `${join(tree, "directory")}:${join(tree, "path")}`;
  try {
    assert.throws(findWorker, { code: "ENOENT" });
    for (const each of [onPath, built, own]) {
      mkdirSync(dirname(each), { recursive: true });
      writeFileSync(each, "", { mode: 0o755 });
      assert.equal(findWorker(), each);
    }
    process.env.IMAGEWORKER = "/of/the/environment";
    assert.equal(findWorker(), "/of/the/environment");
    assert.equal(findWorker("/of/the/argument"), "/of/the/argument");
  } finally {
    process.env.PATH = PATH;
    delete process.env.IMAGEWORKER;
    if (IMAGEWORKER !== undefined) process.env.IMAGEWORKER = IMAGEWORKER;
  }
});

test("a worker of another protocol is not used", async () => {
  const message = "this client speaks protocol version 1, and the worker";
  for (const [greeting, reason] of [
    [{ error: { code: -32602, message: "no", data: { kind: "invalidParams", supported: [2, 3] } } }, "speaks 2,3"],
    [{ error: { code: -32601, message: "unknown method initialize", data: {} } }, "answers: unknown method initialize"],
    [{ error: null }, "answers: nothing that can be read"],
    [{ result: { protocolVersion: 2 } }, "speaks 2"],
  ]) {
    const ends = [];
    let onExit;
    const exited = new Promise((done) => (onExit = (end) => done(ends.push(end.constructor))));
    const fake = worker("another", ({ id }, say) => say(JSON.stringify({ id, result: {} })), { onExit }, greeting);
    const loading = fake.load("data:,");
    await assert.rejects(fake.ready, { name: "IncompatibleWorkerError", message: `${message} ${reason}` });
    const refused = { kind: "incompatible", retryable: false, message: `${message} ${reason}` };
    await assert.rejects(loading, { ...refused, url: "data:," });
    for (let n = 0; n < 3; n++) {
      await assert.rejects(fake.stats(), refused);
      await new Promise((done) => setTimeout(done, 20)); // It is being killed, and then dead.
    }
    await assert.rejects(fake.loadAll(["data:,"]).next(), IncompatibleWorkerError);
    await exited;
    await fake.close();
    assert.deepEqual(ends, [IncompatibleWorkerError]);
  }
});

test("ready is rejected if the worker does not start or ends before it answers", async () => {
  const missing = new ImageWorker({ binary: join(folder, "missing") });
  await assert.rejects(missing.ready, { kind: "workerExited", exitStatus: null });
  const ends = new ImageWorker({ binary: script("ends", "#!/bin/sh\necho >&2 broken\nexit 7\n") });
  await assert.rejects(ends.ready, { kind: "workerExited", exitStatus: 7, message: "the worker ended (status 7): broken" });
  const told = new ImageWorker({ binary: script("tells", `#!/bin/sh\necho >&2 '{"message":"broken"}'\nexit 7\n`), logFormat: "json" });
  await assert.rejects(told.ready, { message: "the worker ended (status 7): broken", log: ['{"message":"broken"}'] });
  await assert.rejects(ends.loadAll(["data:,"], { maxInFlight: 1 }).next().then(({ value }) => Promise.reject(value.error)), WorkerExited);
  const hopeless = new ImageWorker({ binary: script("ends-for-good", "#!/bin/sh\nexit 64\n") });
  await assert.rejects(hopeless.loadAll(["data:,", "data:,"]).next(), { kind: "workerExited", retryable: false });
});

test("the answer to initialize does not count as a sign of life", async () => {
  const fake = worker("greets", () => process.exit(1), { maxRestarts: 2, longestPauseMs: 60_000 });
  for (let n = 0; n < 3; n++) await assert.rejects(fake.call("a"), { retryable: true, exitStatus: 1 });
  const { pid } = fake;
  await assert.rejects(fake.call("a"), WorkerExited);
  assert.equal(fake.pid, pid, "no other worker was started");
});

test("if no worker is found, ready and each call are rejected", async () => {
  const copy = join(folder, "alone", "node", "imageworker.mjs");
  mkdirSync(join(folder, "alone", "node"), { recursive: true });
  copyFileSync(client, copy);
  const program = script("alone.mjs", `import { ImageWorker } from ${JSON.stringify(copy)};
    const worker = new ImageWorker();
    for (const call of [worker.ready, worker.load("data:,")]) await call.catch(({ message }) => console.log(message));`);
  const { stdout } = spawnSync(process.execPath, [program], { env: { PATH: join(folder, "alone") }, encoding: "utf8" });
  const advice = "install its npm package, put a release of it on the PATH, build it (swift build -c release), or set IMAGEWORKER to its path";
  assert.equal(stdout, `the worker did not start: imageworker was not found: ${advice}\n`.repeat(2));
});
