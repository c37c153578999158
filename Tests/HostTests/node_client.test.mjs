// examples/node/imageworker.mjs against the built worker. test_node_client.py starts the origin and runs this.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";

import {
  CacheError,
  CancelledByRequest,
  DecodingError,
  ImageWorker,
  ImageWorkerError,
  NetworkError,
  RequestError,
  WorkerExited,
} from "../../examples/node/imageworker.mjs";

const origin = process.env.ORIGIN;
const folder = mkdtempSync(join(tmpdir(), "imageworker-"));
after(() => rmSync(folder, { recursive: true }));

async function command(name, members = {}) {
  const answer = await fetch(`${process.env.ORIGIN_CONTROL}/${name}?${new URLSearchParams(members)}`);
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}

let caches = 0;
async function withWorker(options, body, settings = {}) {
  const worker = new ImageWorker({ options: ["--cache-dir", join(folder, `cache-${++caches}`), ...options], ...settings });
  try {
    await body(worker);
  } finally {
    await worker.close();
  }
}

beforeEach(() => command("reset"));

test("a loaded image is a file with its size", () =>
  withWorker([], async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?bytes=4000`);
    assert.deepEqual([image.cache, image.format, image.width, image.height], ["miss", "png", 32, 24]);
    assert.equal(readFileSync(image.path).length, 4000);
  }));

test("pixels are a buffer, and released", () =>
  withWorker([], async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?width=30&height=20`, { deliver: "pixels" });
    const rows = await worker.takePixels(image);
    assert.equal(rows.length, 20 * image.pixels.stride);
    assert.equal((await worker.call("stats")).pixels.regions, 0);
  }));

test("pixels that cannot be read are released as well", () =>
  withWorker([], async (worker) => {
    const image = await worker.load(`${origin}/image/1.png`, { deliver: "pixels" });
    unlinkSync(image.pixels.path);
    await assert.rejects(worker.takePixels(image), { code: "ENOENT" });
    assert.equal((await worker.call("stats")).pixels.regions, 0);
  }));

test("events come to the callback before the result", () =>
  withWorker([], async (worker) => {
    const names = [];
    await worker.load(`${origin}/image/1.png?bytes=100000`, { onEvent: ({ name }) => names.push(name) });
    assert.equal(names[0], "started");
  }));

test("the iterator of events ends with the result", () =>
  withWorker([], async (worker) => {
    const events = [];
    for await (const event of worker.loadEvents(`${origin}/image/1.png`)) events.push(event);
    assert.equal(events[0].name, "started");
    assert.equal(events.at(-1).name, "completed");
    assert.equal(events.at(-1).params.format, "png");
  }));

test("leaving the iterator early cancels the load", () =>
  withWorker([], async (worker) => {
    for await (const _ of worker.loadEvents(`${origin}/image/1.png?hold=never`)) {
      await command("await", { gate: "never", held: 1 });
      break;
    }
    await command("await", { left: 1 });
  }));

test("the iterator can be left while it waits for an event", () =>
  withWorker([], async (worker) => {
    const events = worker.loadEvents(`${origin}/image/1.png?hold=never`);
    assert.equal((await events.next()).value.name, "started");
    await command("await", { gate: "never", held: 1 });
    const waiting = events.next();
    await events.return();
    assert.deepEqual(await waiting, { value: undefined, done: true });
    await command("await", { left: 1 });
  }));

test("errors carry kind, code, retryable and data", () =>
  withWorker(["--retries", "0"], async (worker) => {
    const missing = await worker.load(`${origin}/image/1.png?status=404`).catch((error) => error);
    assert.ok(missing instanceof ImageWorkerError);
    assert.deepEqual([missing.kind, missing.code, missing.retryable, missing.data.status], ["http", 2005, false, 404]);
    const broken = await worker.load(`${origin}/image/2.png?bytes=5000&truncate=1000`).catch((error) => error);
    assert.deepEqual([broken.kind, broken.retryable], ["truncated", true]);
    const refused = await worker.load(`${origin}/image/3.png`, { colour: "red" }).catch((error) => error);
    assert.deepEqual([refused.kind, refused.data.member], ["invalidParams", "colour"]);
  }));

test("aborting the signal rejects with its reason and cancels the load", () =>
  withWorker([], async (worker) => {
    const controller = new AbortController();
    const loading = worker.load(`${origin}/image/1.png?hold=never`, { signal: controller.signal });
    await command("await", { gate: "never", held: 1 });
    const reason = new Error("scrolled away");
    controller.abort(reason);
    await assert.rejects(loading, reason);
    await command("await", { left: 1 });
    await assert.rejects(worker.load(`${origin}/image/2.png`, { signal: controller.signal }), reason);
    await worker.load(`${origin}/image/2.png`);
  }));

test("a thousand calls may share a signal", () =>
  withWorker([], async (worker) => {
    const warnings = [];
    const warn = (warning) => warnings.push(warning.name);
    process.on("warning", warn);
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 1000 }, (_, n) => worker.load(`${origin}/image/${n % 9}.png`, { signal })));
    assert.deepEqual(getEventListeners(signal, "abort"), []);
    process.off("warning", warn);
    assert.deepEqual(warnings, []);
  }));

test("the host gets no events of what it did not send, nor of what it aborted", async () => {
  const events = [];
  await withWorker(
    [],
    async (worker) => {
      const aborter = new AbortController();
      const { signal } = aborter;
      const urls = [1, 2, 3].map((n) => `${origin}/image/${n}.png?hold=never`);
      const aborted = [worker.load(urls[0], { signal }), worker.prefetch(urls, { signal, events: ["progress", "failed"] })];
      await command("await", { gate: "never", held: 3 });
      aborter.abort();
      for (const { reason } of await Promise.allSettled(aborted)) assert.equal(reason.name, "AbortError");
      await command("await", { left: 3 });
      await worker.takePixels(await worker.load(`${origin}/image/4.png`, { deliver: "pixels" }));
      await worker.call("stats");
      assert.deepEqual(events, []);
      worker.notify("stats");
      await worker.call("stats");
      assert.deepEqual(events.map(({ name }) => name), ["completed"]);
    },
    { onEvent: (event) => events.push(event) },
  );
});

test("a request that the worker cannot read is refused, and the others go on", () =>
  withWorker(["--max-line", "1M"], async (worker) => {
    const url = `${origin}/image/1.png`;
    const held = worker.load(`${url}?hold=gate`);
    const nested = (depth) => (depth === 0 ? {} : { deeper: nested(depth - 1) });
    const calls = [
      () => worker.load("https://example.com/cat-\ud83d"),
      () => worker.load(url, { key: "\ude00" }),
      () => worker.load(url, { headers: { "x-cat\ud83d": "1" } }),
      () => worker.load(url, { transform: nested(1000) }),
      () => worker.prefetch(Array(100_000).fill(url)),
    ];
    const errors = [];
    for (const call of calls) errors.push(await call().catch((error) => error));
    for (const error of errors) assert.ok(error instanceof RequestError, String(error));
    const kinds = ["invalidParams", "invalidParams", "invalidParams", "parseError", "invalidRequest"];
    assert.deepEqual(errors.map((error) => error.kind), kinds);
    assert.deepEqual([errors[0].url, errors[3].url], ["https://example.com/cat-\ud83d", url]);
    const both = await Promise.allSettled(calls.slice(3).map((call) => call()));
    assert.deepEqual(both.map(({ reason }) => reason.constructor), [RequestError, RequestError]);
    await command("release", { gate: "gate" });
    assert.equal((await held).width, 32);
    assert.equal((await worker.load(url, { key: "a whole 😀, and \\ud83d in letters" })).width, 32);
  }));

test("a call that cannot be serialised is not pending", () =>
  withWorker([], async (worker) => {
    const { signal } = new AbortController();
    await assert.rejects(worker.load(`${origin}/image/1.png`, { signal, retries: 1n }), TypeError);
    assert.deepEqual(getEventListeners(signal, "abort"), []);
    await assert.rejects(worker.call("stats", null), RequestError);
  }));

test("a killed worker fails each pending load once", () =>
  withWorker([], async (worker) => {
    const loads = Array.from({ length: 100 }, (_, n) => worker.load(`${origin}/image/${n}.png?hold=never`));
    const outcomes = Promise.allSettled(loads);
    await command("await", { gate: "never", held: 6 });
    process.kill(worker.pid, "SIGKILL");
    for (const [n, { reason }] of (await outcomes).entries()) {
      assert.ok(reason instanceof WorkerExited, String(reason));
      assert.equal(reason.url, `${origin}/image/${n}.png?hold=never`);
      assert.equal(reason.lost.length, 100);
    }
  }));

test("what was lost is named, as strings, and only what was to come", () =>
  withWorker([], async (worker) => {
    const url = `${origin}/image/1.png?hold=never`;
    const calls = [worker.load(new URL(url)), worker.prefetch(["https://example.com/2", { url: "https://example.com/3" }])];
    const outcomes = Promise.allSettled([...calls, worker.call("query", { url: "https://example.com/4" })]);
    process.kill(worker.pid, "SIGKILL");
    const [{ reason }] = await outcomes;
    assert.equal(reason.url, url);
    assert.deepEqual(reason.lost, [url, "https://example.com/2", "https://example.com/3"]);
  }));

test("the next load starts a dead worker again", async () => {
  let ended;
  await withWorker(
    [],
    async (worker) => {
      for (const n of [1, 2, 3]) {
        await worker.load(`${origin}/image/${n}.png`);
        const end = new Promise((done) => (ended = done));
        const alive = setInterval(() => {}, 1000); // A worker without calls does not keep the program going.
        process.kill(worker.pid, "SIGKILL");
        assert.equal((await end).data.exitStatus, "SIGKILL");
        clearInterval(alive);
      }
      await Promise.all(Array.from({ length: 20 }, (_, n) => worker.load(`${origin}/image/${n}.png`)));
    },
    { onExit: (end) => ended(end) },
  );
});

test("a worker that dies again and again is left dead", async () => {
  const [script, starts] = [join(folder, "dies"), join(folder, "starts")];
  writeFileSync(script, `#!/bin/sh\necho started >> ${starts}\nexit 1\n`, { mode: 0o755 });
  const worker = new ImageWorker({ binary: script, maxRestarts: 2, longestPauseMs: 60_000 });
  for (let n = 0; n < 5; n++) await assert.rejects(worker.load("data:,"), WorkerExited);
  assert.equal(readFileSync(starts, "utf8").match(/started/g).length, 3);
});

test("a load that waits for a restart can be aborted", async () => {
  const worker = new ImageWorker({ binary: "/bin/false", longestPauseMs: 60_000, maxRestarts: 100 });
  await assert.rejects(worker.load("data:,"), WorkerExited);
  const aborter = new AbortController();
  const loading = worker.load("data:,", { signal: aborter.signal });
  aborter.abort(new Error("left"));
  await assert.rejects(loading, /left/);
  await worker.close();
});

test("whatever moment it is killed at, each call ends once and new ones work", (context) =>
  withWorker(
    ["--retries", "0"],
    async (worker) => {
      const urls = Array.from({ length: 1000 }, (_, n) => `${origin}/image/${n}.png?bytes=${1000 + n * 40}`);
      const outcomes = [];
      const failed = [];
      let wake;
      const begin = (url) =>
        worker.load(url).then(
          () => outcomes.push("loaded"),
          (error) => (outcomes.push(error), failed.push(url)),
        ).finally(() => wake?.());
      const loads = urls.map(begin);
      const moments = Array.from({ length: 6 }, () => Math.floor(Math.random() * 900)).sort((a, b) => a - b);
      context.diagnostic(`killed after ${moments} outcomes`);
      for (const count of moments) {
        while (outcomes.length < count) await new Promise((done) => (wake = done));
        try {
          process.kill(worker.pid, "SIGKILL");
        } catch (error) {
          assert.equal(error.code, "ESRCH");
        }
        loads.push(...failed.splice(0).map(begin));
      }
      await Promise.all(loads);
      for (const outcome of outcomes) assert.ok(outcome === "loaded" || outcome instanceof WorkerExited, String(outcome));
      assert.equal(outcomes.length, loads.length);
      await Promise.all(urls.map((url) => worker.load(url)));
    },
    { maxRestarts: 100, longestPauseMs: 100 },
  ));

test("ten thousand loads at once", () =>
  withWorker([], async (worker) => {
    const loads = Array.from({ length: 10_000 }, (_, n) => worker.load(`${origin}/image/${n % 50}.png`, { deliver: "none" }));
    for (const image of await Promise.all(loads)) assert.equal(image.width, 32);
  }));

test("the class of an error is its family", () =>
  withWorker(["--retries", "0"], async (worker) => {
    const url = `${origin}/image/1.png`;
    await assert.rejects(worker.load(`${url}?status=500`), NetworkError);
    await assert.rejects(worker.load(`${url}?x-n=1`, { cache: "only-if-cached" }), CacheError);
    await assert.rejects(worker.load(`${url}?x-n=2`, { digest: `sha256-${"0".repeat(64)}` }), DecodingError);
    await assert.rejects(worker.load("ftp://example.com/"), RequestError);
    const held = assert.rejects(worker.load(`${url}?hold=never`, { group: "a" }), CancelledByRequest);
    await command("await", { gate: "never", held: 1 });
    await worker.call("cancel", { group: "a" });
    await held;
  }));

test("a bad option is told in the error", () =>
  withWorker(["--no-such-option"], async (worker) => {
    const refused = await worker.load(`${origin}/image/1.png`).catch((error) => error);
    assert.equal(refused.data.exitStatus, 64);
    assert.match(refused.message, /--no-such-option/);
  }));

test("a thousand loads at once with a talkative log", () =>
  withWorker(["--log-level", "debug", "--max-per-host", "16"], async (worker) => {
    const urls = Array.from({ length: 1000 }, (_, n) => `${origin}/image/${n}.png`);
    const images = await Promise.all(urls.map((url) => worker.load(url)));
    assert.deepEqual(images.map((image) => image.url), urls);
  }));

test("an inline image of megabytes is one line", () =>
  withWorker([], async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?bytes=6000000`, { deliver: "data" });
    assert.equal(Buffer.from(image.data, "base64").length, 6_000_000);
  }));

test("requests longer than the pipe do not dead-lock", () =>
  withWorker([], async (worker) => {
    const result = await worker.prefetch(Array(20_000).fill(`${origin}/image/1.png`));
    assert.deepEqual([result.total, result.failed], [20_000, 0]);
  }));

test("closing cancels what is pending", () =>
  withWorker([], async (worker) => {
    const loading = worker.load(`${origin}/image/1.png?hold=never`).catch((error) => error);
    await command("await", { gate: "never", held: 1 });
    await worker.close();
    assert.equal((await loading).kind, "cancelled");
    const late = await worker.load(`${origin}/image/2.png`).catch((error) => error);
    assert.deepEqual([late.kind, late.retryable], ["workerExited", false]);
  }));
