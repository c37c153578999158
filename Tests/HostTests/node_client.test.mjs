// examples/node/imageworker.mjs against the built worker. test_node_client.py starts the origin and runs this.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, beforeEach, test } from "node:test";
import { pathToFileURL } from "node:url";

import {
  CacheError,
  CancelledByRequest,
  ClosedError,
  ContentError,
  HTTPStatusError,
  ImageWorker,
  ImageWorkerError,
  InvalidParamsError,
  NetworkError,
  PolicyError,
  RequestError,
  TimeoutError,
  TransportError,
  WorkerExited,
  protocolVersion,
  version,
} from "../../examples/node/imageworker.mjs";

const client = new URL("../../examples/node/imageworker.mjs", import.meta.url);
const origin = process.env.ORIGIN;
const folder = mkdtempSync(join(tmpdir(), "imageworker-"));
after(() => rmSync(folder, { recursive: true }));

async function command(name, members = {}) {
  const answer = await fetch(`${process.env.ORIGIN_CONTROL}/${name}?${new URLSearchParams(members)}`);
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}

let caches = 0;
async function withWorker(settings, body) {
  const worker = new ImageWorker({ cacheDir: join(folder, `cache-${++caches}`), ...settings });
  try {
    await body(worker);
  } finally {
    await worker.close();
  }
}

beforeEach(() => command("reset"));

test("a loaded image is a file with its size", () =>
  withWorker({}, async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?bytes=4000`);
    assert.deepEqual([image.cache, image.format, image.width, image.height], ["miss", "png", 32, 24]);
    assert.equal(readFileSync(image.path).length, 4000);
  }));

test("takePixels returns a buffer and releases the pixels", () =>
  withWorker({}, async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?width=30&height=20`, { deliver: "pixels" });
    const rows = await worker.takePixels(image);
    assert.equal(rows.length, 20 * image.pixels.stride);
    assert.equal((await worker.stats()).pixels.regions, 0);
  }));

test("takePixels releases pixels that cannot be read", () =>
  withWorker({}, async (worker) => {
    const image = await worker.load(`${origin}/image/1.png`, { deliver: "pixels" });
    unlinkSync(image.pixels.path);
    await assert.rejects(worker.takePixels(image), { code: "ENOENT" });
    assert.equal((await worker.stats()).pixels.regions, 0);
  }));

test("events come to the callback before the result", () =>
  withWorker({}, async (worker) => {
    const names = [];
    await worker.load(`${origin}/image/1.png?bytes=100000`, { onEvent: ({ name }) => names.push(name) });
    assert.equal(names[0], "started");
  }));

test("the iterator of events ends with the result", () =>
  withWorker({}, async (worker) => {
    const events = [];
    for await (const event of worker.loadEvents(`${origin}/image/1.png`)) events.push(event);
    assert.equal(events[0].name, "started");
    assert.equal(events.at(-1).name, "completed");
    assert.equal(events.at(-1).params.format, "png");
  }));

test("leaving the iterator early cancels the load", () =>
  withWorker({}, async (worker) => {
    for await (const _ of worker.loadEvents(`${origin}/image/1.png?hold=never`)) {
      await command("await", { gate: "never", held: 1 });
      break;
    }
    await command("await", { left: 1 });
  }));

test("the iterator can be left while it waits for an event", () =>
  withWorker({}, async (worker) => {
    const events = worker.loadEvents(`${origin}/image/1.png?hold=never`);
    assert.equal((await events.next()).value.name, "started");
    await command("await", { gate: "never", held: 1 });
    const waiting = events.next();
    await events.return();
    assert.deepEqual(await waiting, { value: undefined, done: true });
    await command("await", { left: 1 });
  }));

test("errors carry kind, code, retryable and data", () =>
  withWorker({ retries: 0 }, async (worker) => {
    const missing = await worker.load(`${origin}/image/1.png?status=404`).catch((error) => error);
    assert.ok(missing instanceof ImageWorkerError);
    assert.deepEqual([missing.kind, missing.code, missing.retryable, missing.data.status], ["http", 2005, false, 404]);
    const broken = await worker.load(`${origin}/image/2.png?bytes=5000&truncate=1000`).catch((error) => error);
    assert.deepEqual([broken.kind, broken.retryable], ["truncated", true]);
    const refused = await worker.load(`${origin}/image/3.png`, { colour: "red" }).catch((error) => error);
    assert.deepEqual([refused.kind, refused.data.member], ["invalidParams", "colour"]);
  }));

test("aborting the signal rejects with its reason and cancels the load", () =>
  withWorker({}, async (worker) => {
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
  withWorker({}, async (worker) => {
    const warnings = [];
    const warn = (warning) => warnings.push(warning.name);
    process.on("warning", warn);
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 1000 }, (_, n) => worker.load(`${origin}/image/${n % 9}.png`, { signal })));
    assert.deepEqual(getEventListeners(signal, "abort"), []);
    process.off("warning", warn);
    assert.deepEqual(warnings, []);
  }));

test("onEvent gets no events of calls, aborted calls and internal requests", async () => {
  const events = [];
  await withWorker(
    { onEvent: (event) => events.push(event) },
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
      await worker.stats();
      assert.deepEqual(events, []);
      worker.notify("stats");
      await worker.stats();
      assert.deepEqual(events.map(({ name }) => name), ["completed"]);
    },
  );
});

test("a handler that fails ends neither the program nor its call", async () => {
  const warnings = [];
  const warn = (warning) => warnings.push(warning);
  process.on("warning", warn);
  const error = new Error("as a handler may");
  const url = `${origin}/image/1.png`;
  const handlers = {
    throws: () => {
      throw error;
    },
    rejects: async () => {
      throw error;
    },
    "throws a value that is not an error": () => {
      throw undefined;
    },
  };
  for (const [name, onEvent] of Object.entries(handlers)) {
    const exits = [];
    const onExit = (end) => {
      exits.push(end);
      return onEvent();
    };
    await withWorker({ onEvent, onLog: onEvent, onExit, logLevel: "debug" }, async (worker) => {
      assert.equal((await worker.load(url, { onEvent })).width, 32, name);
      assert.equal((await worker.prefetch([url], { onEvent, events: ["completed"] })).failed, 0, name);
      assert.equal((await worker.call("load", { url: `${origin}/image/2.png`, events: ["started"] }, { onEvent })).width, 32, name);
      for await (const outcome of worker.loadAll([`${origin}/image/3.png`], { onEvent })) assert.equal(outcome.image.width, 32, name);
      worker.notify("stats");
      await worker.stats();
      process.kill(worker.pid, "SIGKILL");
      await assert.rejects(worker.load(`${url}?hold=never`), WorkerExited);
      assert.equal((await worker.load(url)).width, 32, name);
      assert.equal(exits.length, 1, name);
    });
    await new Promise(setImmediate);
    assert.ok(warnings.length > 6, name);
    const cause = name.endsWith("not an error") ? undefined : error;
    for (const warning of warnings.splice(0)) assert.deepEqual([warning.name, warning.cause], ["ImageWorkerWarning", cause]);
  }
  process.off("warning", warn);
});

test("an onEvent that is not a function is refused at once, also for an image in the cache", () =>
  withWorker({}, async (worker) => {
    const url = `${origin}/image/1.png`;
    await worker.load(url);
    for (const onEvent of [5, 0, "", "log", null, {}]) {
      const refused = { name: "TypeError", message: /^onEvent must be a function, not / };
      await assert.rejects(worker.load(url, { onEvent }), refused);
      await assert.rejects(worker.prefetch([url], { onEvent }), refused);
      await assert.rejects(worker.call("load", { url }, { onEvent }), refused);
      await assert.rejects(worker.loadAll([url], { onEvent }).next(), refused);
    }
    assert.equal((await worker.stats()).requests.received, 1);
  }));

test("a request that the worker cannot read is rejected, and the others continue", () =>
  withWorker({ maxLine: 2 ** 20 }, async (worker) => {
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
  withWorker({}, async (worker) => {
    const { signal } = new AbortController();
    await assert.rejects(worker.load(`${origin}/image/1.png`, { signal, retries: 1n }), TypeError);
    assert.deepEqual(getEventListeners(signal, "abort"), []);
    await assert.rejects(worker.call("stats", null), RequestError);
  }));

test("a killed worker fails each pending load once", () =>
  withWorker({}, async (worker) => {
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

test("lost has the URLs of loads and prefetches as strings", () =>
  withWorker({}, async (worker) => {
    const url = `${origin}/image/1.png?hold=never`;
    const calls = [worker.load(new URL(url)), worker.prefetch(["https://example.com/2", { url: "https://example.com/3" }])];
    const outcomes = Promise.allSettled([...calls, worker.call("query", { url: "https://example.com/4" })]);
    process.kill(worker.pid, "SIGKILL");
    const [{ reason }] = await outcomes;
    assert.equal(reason.url, url);
    assert.deepEqual(reason.lost, [url, "https://example.com/2", "https://example.com/3"]);
  }));

test("the next load restarts a dead worker", async () => {
  let ended;
  await withWorker(
    { onExit: (end) => ended(end) },
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
  );
});

test("a worker that dies again and again is not restarted", async () => {
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

test("if the worker is killed at any moment, each call ends once and new calls work", (context) =>
  withWorker(
    { retries: 0, maxRestarts: 100, longestPauseMs: 100 },
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
  ));

test("ten thousand loads at once", () =>
  withWorker({}, async (worker) => {
    const loads = Array.from({ length: 10_000 }, (_, n) => worker.load(`${origin}/image/${n % 50}.png`, { deliver: "none" }));
    for (const image of await Promise.all(loads)) assert.equal(image.width, 32);
  }));

test("the class of an error says what failed", () =>
  withWorker({ retries: 0 }, async (worker) => {
    const url = `${origin}/image/1.png`;
    const errorOf = (address, options) => worker.load(address, options).then(assert.fail, (error) => error);
    const status = await errorOf(`${url}?status=404`, { response: true });
    assert.ok(status instanceof HTTPStatusError && status instanceof NetworkError);
    assert.deepEqual([status.name, status.status, status.response.status], ["HTTPStatusError", 404, 404]);
    assert.ok((await errorOf(`${url}?status=404`)) instanceof PolicyError);
    const slow = await errorOf(`${url}?hold=never`, { timeoutMs: 1 });
    assert.ok(slow instanceof TimeoutError && slow instanceof NetworkError);
    assert.deepEqual([slow.kind, slow.phase], ["timeout", "firstByte"]);
    assert.ok((await errorOf(`${url}?bytes=5000&truncate=1000`)) instanceof TransportError);
    assert.ok((await errorOf(`${url}?x-n=1`, { cache: "only-if-cached" })) instanceof CacheError);
    assert.ok((await errorOf(`${url}?x-n=2`, { digest: `sha256-${"0".repeat(64)}` })) instanceof ContentError);
    const refused = await errorOf(url, { transform: { width: "256" } });
    assert.ok(refused instanceof InvalidParamsError && refused instanceof RequestError);
    assert.equal(refused.member, "transform.width");
    const held = assert.rejects(worker.load(`${url}?hold=never`, { group: "a" }), CancelledByRequest);
    await command("await", { gate: "never", held: 1 });
    await worker.cancel({ group: "a" });
    await held;
  }));

test("the error of a wrong flag names the flag", () =>
  withWorker({ arguments: ["--no-such-option"] }, async (worker) => {
    const refused = await worker.load(`${origin}/image/1.png`).catch((error) => error);
    assert.equal(refused.data.exitStatus, 64);
    assert.match(refused.message, /--no-such-option/);
  }));

test("a thousand loads at once with a talkative log", () =>
  withWorker({ logLevel: "debug", maxPerHost: 16 }, async (worker) => {
    const urls = Array.from({ length: 1000 }, (_, n) => `${origin}/image/${n}.png`);
    const images = await Promise.all(urls.map((url) => worker.load(url)));
    assert.deepEqual(images.map((image) => image.url), urls);
  }));

test("an inline image of 6 MB arrives as one line", () =>
  withWorker({}, async (worker) => {
    const image = await worker.load(`${origin}/image/1.png?bytes=6000000`, { deliver: "data" });
    assert.equal(Buffer.from(image.data, "base64").length, 6_000_000);
  }));

test("requests longer than the pipe's buffer do not deadlock", () =>
  withWorker({}, async (worker) => {
    const result = await worker.prefetch(Array(20_000).fill(`${origin}/image/1.png`));
    assert.deepEqual([result.total, result.failed], [20_000, 0]);
  }));

test("close cancels pending calls", () =>
  withWorker({}, async (worker) => {
    const loading = worker.load(`${origin}/image/1.png?hold=never`).catch((error) => error);
    await command("await", { gate: "never", held: 1 });
    await worker.close();
    assert.equal((await loading).kind, "cancelled");
    for (const call of [() => worker.load(`${origin}/image/2.png`), () => worker.stats(), async () => worker.notify("stats")]) {
      const late = await call().then(assert.fail, (error) => error);
      assert.ok(late instanceof ClosedError);
      assert.deepEqual([late.message, late.kind, late.retryable], ["this ImageWorker is closed", "closed", false]);
    }
  }));

test("close with drain finishes pending calls", () =>
  withWorker({}, async (worker) => {
    const loading = worker.load(`${origin}/image/1.png?hold=gate`);
    await command("await", { gate: "gate", held: 1 });
    const closing = worker.close({ drain: true });
    await assert.rejects(worker.load(`${origin}/image/2.png`), ClosedError);
    await command("release", { gate: "gate" });
    assert.equal((await loading).width, 32);
    await closing;
    await assert.rejects(worker.close(5000), TypeError);
  }));

test("ready has the version of the worker, which is that of the client", () =>
  withWorker({}, async (worker) => {
    const { server, protocolVersion: spoken } = await worker.ready;
    assert.deepEqual([server.version, spoken], [version, protocolVersion]);
    assert.ok((await worker.call("initialize", { formats: true })).formats.decode.includes("jpeg"));
  }));

test("a worker that is started again has the options of configure", async () => {
  let ended;
  const end = new Promise((done) => (ended = done));
  await withWorker({ retries: 1, onExit: (error) => ended(error) }, async (worker) => {
    assert.deepEqual([(await worker.configure()).retries, (await worker.configure()).maxPerHost], [1, "auto"]);
    await worker.configure({ maxPerHost: 3 });
    const alive = setInterval(() => {}, 1000); // A worker without calls does not keep the program going.
    process.kill(worker.pid, "SIGKILL");
    await end;
    clearInterval(alive);
    assert.deepEqual([(await worker.configure()).retries, (await worker.configure()).maxPerHost], [1, 3]);
    assert.equal((await worker.ready).limits.maxPerHost, 3);
  });
});

test("each option of the worker is a setting", async () => {
  const { "x-options": options } = JSON.parse(spawnSync((await import(client)).findWorker(), ["--describe"], { encoding: "utf8" }).stdout);
  const changed = {
    memoryLimit: 1000000, diskLimit: 2000000, maxAgeMs: 1500, maxConcurrent: 5, maxPerHost: 3, maxConnectionsPerHost: 2, rate: "5/s",
    maxRedirects: 3, maxQueued: 9, order: "lifo", timeoutMs: 1500, connectTimeoutMs: 2500, minRate: 5, deadlineMs: 3500,
    retries: 1, failedTtlMs: 4500, maxBytes: 77, maxPixels: 88, decodeTimeoutMs: 5500, minFree: 1, verify: "always",
    resolver: "system", network: "public", proxy: "", userAgent: "me", header: ["A: b", "C: d"], insecure: true,
    keyIgnoreQuery: ["sig", "x*"], events: ["started", "progress"], eof: "cancel", exitStatus: true, logLevel: "error",
    logFormat: "text",
  };
  assert.deepEqual(Object.keys(changed), options.map(({ member }) => member).filter(Boolean));
  await withWorker(changed, async (worker) => assert.deepEqual(await worker.configure(), changed));
  const cookies = join(folder, "cookies");
  writeFileSync(cookies, "");
  const shared = join(folder, "shared");
  await withWorker({ cacheDir: shared, cacheNamespace: "other" }, (worker) => worker.ready);
  const fixed = { cacheNamespace: "other", readOnlyCache: [shared], maxLine: 1 << 20, decoders: 1, cookies };
  await withWorker(fixed, async (worker) => {
    const { limits, cache } = await worker.ready;
    assert.deepEqual([limits.maxLine, cache.namespace], [1 << 20, "other"]);
  });
});

test("a setting that does not exist or has another type is refused, and the near name is suggested", () => {
  for (const [settings, message] of [
    [["--cache-dir", folder], "the settings must be an object such as { maxPerHost: 8 }, not an array"],
    ["--max-per-host 8", 'the settings must be an object such as { maxPerHost: 8 }, not "--max-per-host 8"'],
    [null, "the settings must be an object such as { maxPerHost: 8 }, not null"],
    [new Map([["cacheDir", folder]]), "the settings must be an object such as { maxPerHost: 8 }, not an object (Map)"],
    [{ cacheDirectory: folder }, "unknown setting cacheDirectory"],
    [{ cachedir: folder }, "unknown setting cachedir (did you mean cacheDir?)"],
    [{ "--max-per-host": 8 }, "unknown setting --max-per-host (did you mean maxPerHost?)"],
    [{ maxConcurent: 8 }, "unknown setting maxConcurent (did you mean maxConcurrent?)"],
    [{ timeout: 8 }, "unknown setting timeout (did you mean timeoutMs?)"],
    [{ __proto__: null, constructor: 1 }, "unknown setting constructor"],
    [{ maxPerHost: "8" }, 'maxPerHost must be a whole number or "auto", not "8"'],
    [{ timeoutMs: -1 }, "timeoutMs must be a whole number of milliseconds, not -1"],
    [{ insecure: 1 }, "insecure must be true or false, not 1"],
    [{ readOnlyCache: folder }, `readOnlyCache must be a list of strings, not "${folder}"`],
    [{ header: { a: "b" } }, 'header must be a list of lines such as ["Accept-Language: en"], not an object (Object)'],
    [{ arguments: "--insecure" }, 'arguments must be a list of flags such as ["--max-per-host=8"], not "--insecure"'],
    [{ onEvent: "log" }, 'onEvent must be a function, not "log"'],
    [{ maxRestarts: Infinity }, "maxRestarts must be a whole number, not Infinity"],
  ]) {
    assert.throws(() => new ImageWorker(settings), { name: "TypeError", message });
  }
});

test("header fields may be an object, Headers, a Map, pairs or another iterable of pairs", () =>
  withWorker({}, async (worker) => {
    const pairs = [["X-Name", "a"], ["x-name", "b"], ["Cookie", "c=1"], ["cookie", "d=2"]];
    const headers = new Headers([["x-name", "a"], ["x-name", "b"], ["cookie", "c=1; d=2"]]);
    const all = [
      { "X-Name": "a, b", Cookie: "c=1; d=2", Left: undefined },
      headers,
      new Map(headers),
      pairs,
      new Set(pairs),
      (function* () {
        yield* pairs;
      })(),
    ];
    for (const [n, fields] of all.entries()) await worker.load(`${origin}/image/1.png?x-n=${n}`, { headers: fields });
    await worker.prefetch([`${origin}/image/1.png?x-n=p`], { headers });
    await worker.prefetch([{ url: `${origin}/image/1.png?x-n=i`, headers }]);
    worker.notify("load", { url: `${origin}/image/1.png?x-n=n`, headers });
    await command("await", { requests: 9 });
    const { exchanges } = await command("log", { path: "/image" });
    assert.equal(exchanges.length, 9);
    for (const { target, headers } of exchanges) {
      const sent = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
      assert.deepEqual([sent["x-name"], sent.cookie], ["a, b", "c=1; d=2"], target);
    }
    for (const wrong of ["a: b", 5, null, ["a: b"], [["a"]], [["a", 1]], new Date(), [["a", "b", "c"]]]) {
      await assert.rejects(worker.load(`${origin}/image/1.png`, { headers: wrong }), TypeError, String(wrong));
    }
    await assert.rejects(worker.load(`${origin}/image/1.png`, { headers: { a: 1 } }), { kind: "invalidParams", member: "headers" });
  }));

test("options that are not an object are refused, and undefined is not given", () =>
  withWorker({}, async (worker) => {
    const url = new URL(`${origin}/image/1.png`);
    for (const wrong of ["high", ["high"], null, 5, new Map()]) await assert.rejects(worker.load(url, wrong), TypeError);
    const none = { priority: undefined, transform: undefined, signal: undefined, onEvent: undefined, headers: undefined, saveTo: undefined };
    assert.equal((await worker.load(url, none)).width, 32);
    for (const wrong of [url.href, url, 5, undefined]) await assert.rejects(worker.prefetch(wrong), TypeError);
    assert.equal((await worker.prefetch(new Set([url]))).failed, 0);
  }));

test("an image without pixels has none to take", () =>
  withWorker({}, async (worker) => {
    const image = await worker.load(`${origin}/image/1.png`);
    const message = 'the image has no pixels: load it with deliver: "pixels"';
    for (const wrong of [image, undefined]) await assert.rejects(worker.takePixels(wrong), { name: "TypeError", message });
  }));

test("each method of the protocol has one of the client", () =>
  withWorker({}, async (worker) => {
    const url = `${origin}/image/1.png?cache-control=max-age%3D60`;
    const { path } = await worker.load(url, { saveTo: pathToFileURL(join(folder, "saved.png")) });
    assert.deepEqual(readFileSync(join(folder, "saved.png")), readFileSync(path));
    assert.deepEqual([await worker.pause(), await worker.resume()], [{ paused: true }, { paused: false }]);
    assert.equal((await worker.query({ url: new URL(url) })).fresh, true);
    assert.deepEqual(await worker.clear({ url }), { removed: 1, bytes: 4096 });
    assert.equal((await worker.query({ url })).disk, false);
    const bytes = readFileSync(path);
    for (const data of [bytes, bytes.toString("base64")]) assert.equal((await worker.store({ key: "a", data })).bytes, bytes.length);
    assert.equal((await worker.store({ key: "b", path: relative(process.cwd(), join(folder, "saved.png")) })).format, "png");
    const regions = await Promise.all([1, 2, 3, 4].map(() => worker.load(url, { deliver: "pixels" })));
    assert.deepEqual(await worker.release(regions[0]), { released: 1 });
    assert.deepEqual(await worker.release(regions[1].pixels), { released: 1 });
    assert.deepEqual(await worker.release({ path: regions[2].pixels.path }), { released: 1 });
    assert.deepEqual(await worker.release({ all: true }), { released: 1 });
    const held = worker.load(`${url}&hold=never`, { slot: "view" });
    assert.deepEqual(await worker.prioritize({ slot: "view", priority: "low" }), { changed: 1 });
    assert.deepEqual(await worker.cancel({ url: new URL(`${url}&hold=never`) }), { cancelled: 1 });
    await assert.rejects(held, CancelledByRequest);
    assert.equal((await worker.stats()).requests.cancelled, 1);
  }));

test("loadAll yields an outcome for each entry, in the order in which the loads end", () =>
  withWorker({}, async (worker) => {
    const url = `${origin}/image/1.png`;
    const entries = [
      `${url}?hold=gate`,
      new URL(`${url}?x-n=1`),
      { url: `${url}?x-n=1`, id: "again", deliver: "data" },
      { url: `${url}?status=404`, id: { row: 3 } },
    ];
    const outcomes = [];
    for await (const outcome of worker.loadAll(entries, { deliver: "none", transform: { width: 8 } })) {
      outcomes.push(outcome);
      if (outcomes.length === 3) await command("release", { gate: "gate" });
    }
    assert.equal(outcomes.at(-1).index, 0);
    outcomes.sort((a, b) => a.index - b.index);
    assert.deepEqual(outcomes.map(({ id }) => id), [undefined, undefined, "again", { row: 3 }]);
    assert.deepEqual(outcomes.map(({ url }) => url), [entries[0], `${url}?x-n=1`, `${url}?x-n=1`, `${url}?status=404`]);
    assert.deepEqual(outcomes.map(({ image }) => image?.width), [8, 8, 8, undefined]);
    assert.deepEqual(outcomes.map(({ image }) => typeof image?.data), ["undefined", "undefined", "string", "undefined"]);
    assert.equal(outcomes[3].error.status, 404);
  }));

test("loadAll reads no more entries than may be in flight, however slow the loop is", () =>
  withWorker({}, async (worker) => {
    for (const read of [(list) => list, async function* (list) { yield* list; }]) {
      let [begun, taken, most] = [0, 0, 0];
      function* entries() {
        for (; begun < 500; ) {
          begun += 1;
          most = Math.max(most, begun - taken);
          yield `${origin}/image/${begun % 50}.png`;
        }
      }
      for await (const { image } of worker.loadAll(read(entries()), { maxInFlight: 20, deliver: "none" })) {
        taken += 1;
        assert.equal(image.width, 32);
        if (taken % 50 === 0) await worker.stats();
      }
      assert.equal(taken, 500);
      assert.ok(most <= 21 && most >= 10, String(most));
    }
  }));

test("leaving loadAll cancels the loads, releases pixels and ends the source", () =>
  withWorker({}, async (worker) => {
    let isEnded = false;
    async function* entries() {
      try {
        for (let n = 0; n < 20; n++) yield `${origin}/image/${n}.png`;
        for (;;) yield `${origin}/image/1.png?hold=never`;
      } finally {
        isEnded = true;
      }
    }
    for await (const { image } of worker.loadAll(entries(), { deliver: "pixels", maxInFlight: 25 })) {
      await command("await", { gate: "never", held: 1 });
      await worker.release(image);
      break;
    }
    await command("await", { left: 1 });
    while ((await worker.stats()).pixels.regions > 0);
    assert.ok(isEnded);
  }));

test("loadAll can be aborted and left while it waits", () =>
  withWorker({}, async (worker) => {
    const aborter = new AbortController();
    const waiting = worker.loadAll([`${origin}/image/1.png?hold=never`], { signal: aborter.signal }).next();
    await command("await", { gate: "never", held: 1 });
    aborter.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    await command("await", { left: 1 });
    await assert.rejects(worker.loadAll(["data:,"], { signal: aborter.signal }).next(), /enough/);
    assert.deepEqual(getEventListeners(aborter.signal, "abort"), []);

    async function* silent() {
      await new Promise(() => {});
    }
    for (const source of [silent(), [`${origin}/image/2.png?hold=never`]]) {
      const outcomes = worker.loadAll(source);
      const next = outcomes.next();
      await worker.stats();
      await outcomes.return();
      assert.deepEqual(await next, { value: undefined, done: true });
    }
    const silenced = new AbortController();
    const next = worker.loadAll(silent(), { signal: silenced.signal }).next();
    silenced.abort(new Error("enough"));
    await assert.rejects(next, /enough/);
  }));

test("loadAll throws mistakes of the program and of the source after the outcomes", () =>
  withWorker({}, async (worker) => {
    for (const wrong of [undefined, "https://example.com/", 5, { url: "data:," }]) assert.throws(() => worker.loadAll(wrong), TypeError);
    for (const maxInFlight of [0, 1.5, "5"]) assert.throws(() => worker.loadAll([], { maxInFlight }), TypeError);
    const url = `${origin}/image/1.png`;
    for (const [entries, error] of [
      [[url, null], TypeError],
      [[url, ["a", "b"]], TypeError],
      [[url, { url, headers: "a: b" }], TypeError],
      [(function* () { yield url; throw new Error("the list ends here"); })(), /the list ends here/],
      [(async function* () { yield url; throw new Error("the list ends here"); })(), /the list ends here/],
    ]) {
      const widths = [];
      const loop = async () => {
        for await (const { image } of worker.loadAll(entries)) widths.push(image.width);
      };
      await assert.rejects(loop, error);
      assert.deepEqual(widths, [32]);
    }
    for await (const { error } of worker.loadAll([url, { url, colour: "red" }])) if (error) assert.equal(error.member, "colour");
    for await (const _ of worker.loadAll([])) assert.fail("there is nothing to load");
    await worker.close();
    await assert.rejects(worker.loadAll([url]).next(), ClosedError);
  }));

test("a CommonJS program imports the client", () => {
  const program = join(folder, "program.cjs");
  const text = `import(${JSON.stringify(client.href)}).then(async ({ ImageWorker }) => {
    const worker = new ImageWorker({ cacheDir: ${JSON.stringify(join(folder, "commonjs"))} });
    console.log((await worker.ready).server.name);
    await worker.close();
  });`;
  writeFileSync(program, text);
  assert.equal(spawnSync(process.execPath, [program], { encoding: "utf8" }).stdout, "imageworker\n");
});
